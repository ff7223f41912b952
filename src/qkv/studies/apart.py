"""Training and measuring in a process of its own: its memory is then its own, and what stops it stops nothing else."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qkv.errors import RunError, UserError

__all__ = ["Stopped", "in_a_process", "peak_memory"]


class Stopped(Exception):
    """Raised in the process by who was asked to stop, and has saved."""


def in_a_process(measure: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any] | None:
    """What ``measure(*given)`` gives, called in a new process; None if it was asked to stop (`Stopped`).

    Raises:
        UserError: as ``measure`` raised it, or the process ended without a word.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_tell, args=(sender, measure, *given))
    process.start()
    sender.close()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the child too, which saves and ends
    try:
        told = receiver.recv()
    except EOFError:
        told = None
    finally:
        process.join()
        signal.signal(signal.SIGINT, handler)
    if isinstance(told, Exception):
        raise told
    if told is None and process.exitcode not in (0, 130):
        raise RunError(
            f"the training process ended with exit code {process.exitcode}", remedy="the same command goes on from "
            "its last checkpoint",
        )  # fmt: skip
    return told


def peak_memory() -> float:
    """Megabytes that this process has taken at most; 0 where the system does not tell."""
    if not os.path.exists("/proc/self/status"):
        return 0.0
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def _tell(sender: Any, measure: Callable[..., dict[str, Any]], *given: Any) -> None:
    """Send what came of it; nothing if it was stopped; the error if the user can mend one."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    try:
        sender.send(measure(*given))
    except UserError as error:
        sender.send(error)
    except Stopped:
        sys.exit(130)


def _end_with(parent: int) -> None:
    """Ask this process to save and stop when the one that started it is gone, killed, say."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
