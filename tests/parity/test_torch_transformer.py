"""Our blocks against torch.nn.Transformer with the same weights."""

import pytest
import torch
from torch import nn

from qkv.layers.attention import Attention
from qkv.layers.block import DecoderBlock, EncoderBlock, FeedForward, Residual
from qkv.layers.mask import padding
from qkv.weights.names import Fuse, Layout, columns

DIM, HEADS, HIDDEN, DEPTH = 24, 4, 40, 2


def attention(ours: str, theirs: str) -> tuple:
    return (
        Fuse(tuple(f"{ours}.{name}.weight" for name in ("query", "key", "value")), f"{theirs}.in_proj_weight"),
        Fuse(tuple(f"{ours}.{name}.bias" for name in ("query", "key", "value")), f"{theirs}.in_proj_bias"),
        *columns(f"{ours}.output.{{part}} {theirs}.out_proj.{{part}}"),
    )


TORCH = Layout((
    *attention("encoder.{block}.attention", "encoder.layers.{block}.self_attn"),
    *attention("decoder.{block}.attention", "decoder.layers.{block}.self_attn"),
    *attention("decoder.{block}.cross", "decoder.layers.{block}.multihead_attn"),
    *columns("""
        encoder.{block}.attention_residual.norm.{part}       encoder.layers.{block}.norm1.{part}
        encoder.{block}.feed_forward_residual.norm.{part}    encoder.layers.{block}.norm2.{part}
        encoder.{block}.feed_forward.expand.{part}           encoder.layers.{block}.linear1.{part}
        encoder.{block}.feed_forward.reduce.{part}           encoder.layers.{block}.linear2.{part}
        decoder.{block}.attention_residual.norm.{part}       decoder.layers.{block}.norm1.{part}
        decoder.{block}.cross_residual.norm.{part}           decoder.layers.{block}.norm2.{part}
        decoder.{block}.feed_forward_residual.norm.{part}    decoder.layers.{block}.norm3.{part}
        decoder.{block}.feed_forward.expand.{part}           decoder.layers.{block}.linear1.{part}
        decoder.{block}.feed_forward.reduce.{part}           decoder.layers.{block}.linear2.{part}
        encoder_norm.{part}                                  encoder.norm.{part}
        decoder_norm.{part}                                  decoder.norm.{part}
    """),
))  # fmt: skip


class Ours(nn.Module):
    """Encoder and decoder of our parts, with the last norms that torch always has."""

    def __init__(self, order: str, activation: str):
        super().__init__()

        def look() -> Attention:
            return Attention(DIM, HEADS)

        def residual() -> Residual:
            return Residual(DIM, order)

        def forward() -> FeedForward:
            return FeedForward(DIM, HIDDEN, activation)

        self.encoder = nn.ModuleList(EncoderBlock(look(), forward(), residual) for _ in range(DEPTH))
        self.decoder = nn.ModuleList(DecoderBlock(look(), look(), forward(), residual) for _ in range(DEPTH))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(DIM), nn.LayerNorm(DIM)

    def forward(self, source, lengths, target):
        mask = padding(lengths, source.shape[1])
        for block in self.encoder:
            source = block(source, mask)
        source = self.encoder_norm(source)
        for block in self.decoder:
            target = block(target, source, mask)
        return self.decoder_norm(target)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("order", ["post", "pre"])
def test_blocks(order, activation):
    torch.manual_seed(7)
    sizes = (DIM, HEADS, DEPTH, DEPTH, HIDDEN, 0.0, activation)
    theirs = nn.Transformer(*sizes, batch_first=True, norm_first=order == "pre")
    with torch.no_grad():
        for weight in theirs.parameters():
            if weight.dim() == 1:
                weight += 0.3 * torch.randn_like(weight)
    ours = Ours(order, activation)
    ours.load_state_dict(TORCH.load(theirs.state_dict()))
    source, target, lengths = torch.randn(3, 9, DIM), torch.randn(3, 6, DIM), torch.tensor([9, 4, 1])
    hidden = torch.arange(9) >= lengths[:, None]  # theirs: True hides
    causal = nn.Transformer.generate_square_subsequent_mask(6)
    for mode in (True, False):  # theirs takes another path in evaluation mode
        wanted = theirs.train(mode)(source, target, None, causal, None, hidden, None, hidden, tgt_is_causal=True)
        found = ours.train(mode)(source, lengths, target)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


def test_names_there_and_back():
    theirs = nn.Transformer(DIM, HEADS, DEPTH, DEPTH, HIDDEN).state_dict()
    back = TORCH.save(TORCH.load(theirs))
    assert back.keys() == theirs.keys()
    assert all(torch.equal(back[name], theirs[name]) for name in theirs)
