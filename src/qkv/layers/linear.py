"""The linear layer; in inference on a CPU its weight lies as the multiplication reads it."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

__all__ = ["Linear", "side_by_side"]

# A search multiplies a few rows, again and again, by all weights of the decoder, and fetching those is what takes the
# time. In oneDNN's blocked layout they are fetched faster: with 6 blocks of width 512 and 16,000 words greedy search is
# 13 % faster in batches of 64 and 20 % in batches of 4. (Models that torch compiles use the same operator.)
FEW = 96  # rows; with more of them, arithmetic takes longer than fetching, and the plain product is as fast
LARGE = 2**18  # elements; a smaller weight stays in the processor's cache
MANY = 1024  # rows; with as many, one product of several weights is faster than several, and joining them costs little
_AVAILABLE = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class Linear(nn.Linear):
    """``x W^T + b``, as in ``torch``; equal to it up to rounding on every path.

    The blocked copy of a large weight is made at the first product of few rows in inference mode. It is made again
    after the weight has changed, after a pass outside of inference mode, and after `train` or `eval`: a loss may use
    the weight without this layer, and torch's fused optimisers change it without its knowledge. Saving and tracing
    never see it.
    """

    _blocked: tuple[tuple[int, int], Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        searching = not torch.compiler.is_compiling() and torch.is_inference_mode_enabled()
        if _AVAILABLE and searching and self._fits(x):
            return torch.ops.mkldnn._linear_pointwise(x, self._in_blocks(), self.bias, "none", [], "")
        if not searching and self._blocked is not None:
            self._blocked = None
        return super().forward(x)

    def train(self, mode: bool = True) -> "Linear":
        """As of any module."""
        self._blocked = None
        return super().train(mode)

    def _fits(self, x: Tensor) -> bool:
        return (
            self.in_features * self.out_features >= LARGE
            and x.device.type == "cpu"
            and x.dtype == self.weight.dtype == torch.float32
            and 0 < x.numel() <= FEW * self.in_features
            and not self.weight.is_inference()  # such a weight does not tell when it changes
            and not torch.is_autocast_enabled("cpu")
        )

    def _in_blocks(self) -> Tensor:
        state = (self.weight.data_ptr(), self.weight._version)
        if self._blocked is None or self._blocked[0] != state:
            self._blocked = state, torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), FEW)
        return self._blocked[1]

    def __getstate__(self) -> dict:
        return {key: value for key, value in self.__dict__.items() if key != "_blocked"}


def side_by_side(layers: Sequence[nn.Module], x: Float[Tensor, "*batch dim"]) -> list[Tensor]:
    """What each layer makes of ``x``: by one product if all are linear, with a bias, and rows are many.

    Equal to each layer's own up to rounding.
    """
    joined = all(isinstance(layer, Linear) and layer.bias is not None for layer in layers)
    if not joined or torch.compiler.is_compiling() or x.numel() < MANY * x.shape[-1]:
        return [layer(x) for layer in layers]
    for layer in layers:
        layer._blocked = None
    weight, bias = torch.cat([layer.weight for layer in layers]), torch.cat([layer.bias for layer in layers])
    return list(nn.functional.linear(x, weight, bias).split([len(layer.bias) for layer in layers], -1))
