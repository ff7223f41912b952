"""What every test runs under: checked shapes, one thread, a settled seed, and a hypothesis that draws no surprises."""

import pytest
from hypothesis import Phase, settings
from jaxtyping import install_import_hook

# Before anything imports them: every call of a layer or a model checks the shapes that its signature promises.
install_import_hook(["qkv.layers", "qkv.models"], "beartype.beartype")
pytest.register_assert_rewrite("every_model")

import torch  # noqa: E402

torch.set_num_threads(1)  # the tests are many small products; and the order of a sum stays the same

# A failure is shown as found: to make it smaller takes minutes (`pytest --hypothesis-profile=smaller` does so).
settings.register_profile("smaller", derandomize=True, deadline=None, max_examples=20, database=None)
settings.register_profile("qkv", settings.get_profile("smaller"), phases=(Phase.explicit, Phase.generate))
settings.load_profile("qkv")


@pytest.fixture(autouse=True)
def seed():
    """The same random numbers for a test, whichever ran before it."""
    torch.manual_seed(0)
