"""Reading ahead: while a step computes, a thread makes the batches of the next."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from qkv.tasks.task import Position

__all__ = ["ReadAhead"]

Step = TypeVar("Step")


class ReadAhead(Generic[Step]):
    """What ``read`` gives for a position, read before it is asked for where ``expect`` said so.

    Batches are a function of their position, so it does not matter when, or by which thread, they are made. An error
    of reading is raised by `take`.
    """

    def __init__(self, read: Callable[[Position], Step]):
        self._read = read
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")
        self._expected: tuple[Position, Future[Step]] | None = None

    def expect(self, position: Position) -> None:
        """Begin to read what will be taken next."""
        self._expected = position, self._thread.submit(self._read, position)

    def take(self, position: Position) -> Step:
        """What is at a position; at once if it was expected and is there already."""
        expected, self._expected = self._expected, None
        if expected and expected[0] == position:
            return expected[1].result()
        return self._read(position)

    def __enter__(self) -> "ReadAhead[Step]":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)  # what is being read is read to its end
