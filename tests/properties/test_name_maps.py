"""Law: a name map there and back is the identity, and what it does not know is refused by name."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.errors import RunError
from qkv.models.saved import build
from qkv.models.transformer import TransformerConfig
from qkv.models.transformer_names import marian, marian_config, marian_config_of
from qkv.weights.names import Drop, Fuse, Layout, Rename, Row, Split, Tied, Transpose, columns

EVERY = Layout((
    Rename("in.{block}.{part}", "layers.{block}.in_proj.{part}"),
    Transpose("turn.{block}", "layers.{block}.turned"),
    Row("bias", "logits_bias"),
    Fuse(("q.{block}.{part}", "k.{block}.{part}", "v.{block}.{part}"), "layers.{block}.qkv.{part}"),
    Split("joined.{block}", ("layers.{block}.left", "layers.{block}.right"), dim=1),
    Tied(("words", "output"), ("embed", "lm_head")),
    Drop((), "sinusoids"),
))  # fmt: skip

sizes = st.integers(1, 3)


@given(blocks=sizes, dim=sizes, seed=st.integers(0, 9))
def test_there_and_back(blocks, dim, seed):
    torch.manual_seed(seed)
    words = torch.randn(4, dim)
    ours = {"bias": torch.randn(4), "words": words, "output": words}
    for block in map(str, range(blocks)):
        for part, shape in (("weight", (dim, 2 * dim)), ("bias", (dim,))):
            ours |= {f"{name}.{block}.{part}": torch.randn(shape) for name in ("in", "q", "k", "v")}
        ours |= {f"turn.{block}": torch.randn(dim, 5), f"joined.{block}": torch.randn(3, 2 * dim)}
    theirs = EVERY.save(ours)
    assert len(theirs) == 2 + blocks * (2 + 1 + 2 + 2)
    back = EVERY.load({**theirs, "sinusoids": torch.ones(1)})
    assert back.keys() == ours.keys() and all(torch.equal(back[name], ours[name]) for name in ours)
    assert back["words"] is back["output"]
    again = EVERY.save(back)
    assert again.keys() == theirs.keys() and all(torch.equal(again[name], theirs[name]) for name in theirs)
    assert theirs["layers.0.turned"].shape == (5, dim) and theirs["logits_bias"].shape == (1, 4)
    assert torch.equal(theirs["layers.0.qkv.bias"], torch.cat([ours[f"{name}.0.bias"] for name in "qkv"]))


@given(
    depths=st.tuples(sizes, sizes),
    tie=st.sampled_from(["all", "output", "none"]),
    activation=st.sampled_from(["relu", "gelu", "swish"]),
)
def test_marian_there_and_back(depths, tie, activation):
    config = TransformerConfig(
        12, 12, dim=8, encoder_depth=depths[0], decoder_depth=depths[1], heads=2, hidden=6, activation=activation,
        positions="sinusoidal-halves", tie=tie, output_bias=True,
    )  # fmt: skip
    assert marian_config(marian_config_of(config)) == config
    ours = build("transformer", config).state_dict()
    theirs = marian(tie).save(ours)
    back = marian(tie).load(theirs)
    assert back.keys() == ours.keys() and all(torch.equal(back[name], ours[name]) for name in ours)
    assert not any(name in theirs for name in ours if name.startswith("encoder."))


def test_what_does_not_fit_is_listed():
    layout = Layout((*columns("a.{part} x.{part}"), Fuse(("q.{part}", "k.{part}"), "qk.{part}")))
    one = torch.ones(2)
    with pytest.raises(RunError, match=r"unknown y\.weight, z"):
        layout.load({"x.weight": one, "y.weight": one, "z": one})
    with pytest.raises(RunError, match=r"missing k\.bias"):
        layout.save({"a.weight": one, "q.bias": one})
    tied = Layout((Tied(("a", "b"), ("x", "y")),))
    with pytest.raises(RunError, match="x and y should be one tensor"):
        tied.load({"x": one, "y": one + 1})
