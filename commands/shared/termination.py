"""SIGTERM, as `timeout`, Slurm and Docker send it, ends a command as Ctrl-C does, with its own exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import NoReturn

from commands.shared.catalogue import Exit

# Set once SIGTERM has come, to tell it from Ctrl-C.
terminated = Event()
# Set once either has come.
ended = Event()


@contextmanager
def heed_signals() -> Iterator[None]:
    """SIGTERM and Ctrl-C raise `KeyboardInterrupt` on the main thread meanwhile, so that what is open is cleaned up."""
    terminated.clear()
    ended.clear()
    if current_thread() is not main_thread():
        yield
        return
    before = [(each, signal.signal(each, end)) for each in (signal.SIGTERM, signal.SIGINT)]
    try:
        yield
    finally:
        for each, handler in before:
            signal.signal(each, handler)


def end(number: int, _frame: FrameType | None) -> None:
    """A handler of signals: the command ends at once."""
    ended.set()
    if number == signal.SIGTERM:
        terminated.set()
    raise KeyboardInterrupt


def leave(code: int) -> NoReturn:
    """End the process with this exit code.

    Python kills itself by SIGINT at its end, whatever the exit code, where an interrupt came in the midst of what a
    compiled library ran at its import; so it has no end of its own after a signal.
    """
    if code in (Exit.INTERRUPTED, Exit.TERMINATED):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def exit_code(code: int) -> int:
    """The exit code of a command that ended with this one."""
    return Exit.TERMINATED if code == Exit.INTERRUPTED and terminated.is_set() else code


def drop_output() -> None:
    """Nothing more can be written to standard output; what is still buffered must not fail at the end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
