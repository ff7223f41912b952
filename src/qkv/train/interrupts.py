"""Ctrl-C and SIGTERM while training: the step at hand is finished and saved; a second one leaves at once."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupts", "noticed"]


class Interrupts:
    """Whether someone asked to stop."""

    wanted = False

    def notice(self, number: int, frame: FrameType | None) -> None:
        if self.wanted:
            raise KeyboardInterrupt
        self.wanted = True
        os.write(2, b"\nfinishing the step and saving; once more to leave at once\n")  # print may be at work right now


@contextmanager
def noticed() -> Iterator[Interrupts]:
    """Within the block SIGINT and SIGTERM only set ``wanted``."""
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():  # only there may handlers be set
        yield interrupts
        return
    before = {number: signal.signal(number, interrupts.notice) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
