"""Averages of weights: a moving one while training, and the mean of the last few."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from qkv.models.saved import untie
from qkv.store import read_tensors, write_tensors

__all__ = ["MovingAverage", "save_mean"]


class MovingAverage:
    """Exponential moving average of a model's state (Polyak and Juditsky 1992, with forgetting).

    average <- d * average + (1 - d) * weights, with d = min(decay, (1 + step) / (10 + step)): early on, the first
    random weights are soon forgotten. Whole numbers (counters) are copied.
    """

    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        live, _ = untie(model.state_dict(keep_vars=True))
        self.tensors = {name: tensor.detach().clone() for name, tensor in live.items()}
        self._live = live
        smooth = [name for name, tensor in live.items() if tensor.is_floating_point()]
        self._smooth = [self.tensors[name] for name in smooth], [live[name] for name in smooth]
        self._copied = [(self.tensors[name], live[name]) for name in live.keys() - set(smooth)]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the model's weights after a step (from 1)."""
        torch._foreach_lerp_(*self._smooth, 1 - min(self.decay, (1 + step) / (10 + step)))
        for average, live in self._copied:
            average.copy_(live)

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within the block the model's weights are the average, without a copy."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for name, average in self.tensors.items():
            average.data, self._live[name].data = self._live[name].data, average.data


def save_mean(files: Sequence[Path], path: Path) -> None:
    """Save the mean of the weights in some files of one model (Vaswani et al. 2017, section 6.1).

    Whole numbers (counters) are those of the last file.
    """
    total: dict[str, Tensor] = {}
    for file in files:
        last, metadata = read_tensors(file)
        for name, tensor in last.items():
            total[name] = total.get(name, 0) + tensor.double() if tensor.is_floating_point() else tensor
    mean = {name: (total[name] / len(files)).to(t.dtype) if t.is_floating_point() else t for name, t in last.items()}
    write_tensors(path, mean, {"tied": metadata.get("tied", "{}")})
