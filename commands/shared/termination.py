"""SIGTERM, as `timeout`, Slurm and Docker send it, ends a command as Ctrl-C does, with its own exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType

from commands.shared.catalogue import Exit

# Set once SIGTERM has come, to tell it from Ctrl-C.
terminated = Event()


@contextmanager
def heed_sigterm() -> Iterator[None]:
    """SIGTERM raises `KeyboardInterrupt` on the main thread meanwhile, so that whatever is open is cleaned up."""
    terminated.clear()
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def end(number: int, _frame: FrameType | None) -> None:
    """A handler of signals: the command ends at once."""
    if number == signal.SIGTERM:
        terminated.set()
    raise KeyboardInterrupt


def exit_code(code: int) -> int:
    """The exit code of a command that ended with this one."""
    return Exit.TERMINATED if code == Exit.INTERRUPTED and terminated.is_set() else code


def drop_output() -> None:
    """Nothing more can be written to standard output; what is still buffered must not fail at the end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
