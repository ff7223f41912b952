"""What every test runs under: checked shapes, one thread, a settled seed, and a hypothesis that draws the same each time."""

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

# Before anything imports them: every call of a layer or a model checks the shapes that its signature promises.
install_import_hook(["qkv.layers", "qkv.models"], "beartype.beartype")
pytest.register_assert_rewrite("every_model")

import torch  # noqa: E402

torch.set_num_threads(1)  # the tests are many small products; and the order of a sum stays the same

settings.register_profile("qkv", derandomize=True, deadline=None, max_examples=25, database=None)
settings.load_profile("qkv")


@pytest.fixture(autouse=True)
def seed():
    """The same random numbers for a test, whichever ran before it."""
    torch.manual_seed(0)
