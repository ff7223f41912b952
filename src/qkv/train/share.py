"""Which batches make up a step, and which of them a process takes."""

from collections.abc import Callable

from qkv.tasks.task import Position

__all__ = ["rank_share", "step_group"]


def step_group(epoch_length: Callable[[int], int], start: Position, size: int) -> tuple[list[Position], Position]:
    """The positions of one step's batches, and where the next step starts.

    ``size`` of them (processes times accumulated batches), fewer at the end of an epoch: steps never span two. So the
    same batches make up a step however they are shared out, and each is used once an epoch.
    """
    end = min(start.batch + size, epoch_length(start.epoch))
    group = [Position(start.epoch, batch) for batch in range(start.batch, end)]
    return group, Position(start.epoch, end) if end < epoch_length(start.epoch) else Position(start.epoch + 1)


def rank_share(group: list[Position], ranks: int, rank: int) -> list[tuple[Position, int]]:
    """A rank's positions of a group, each with its weight.

    All ranks take equally many, or they would wait for each other for ever; where a group does not go round, the
    group's last batch is computed once more with weight 0.
    """
    turns = range(rank, -(-len(group) // ranks) * ranks, ranks)
    return [(group[i], 1) if i < len(group) else (group[-1], 0) for i in turns]
