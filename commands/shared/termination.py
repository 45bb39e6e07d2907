"""Signals and closed output: SIGTERM (from `timeout`, Slurm, Docker) and SIGHUP end a command as Ctrl-C does.

A closed pipe does not. While a search runs, `commands/options/search.py: interrupt_sets` handles Ctrl-C in its place.
"""

from __future__ import annotations

import io
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from commands.shared.catalogue import Exit
from pipesched.ending_signals import HANG_UP, ending_signals

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# Set once SIGTERM or SIGHUP has come, to tell them from Ctrl-C, and once SIGHUP has.
terminated, hung_up = Event(), Event()
# Set once any of the three has come.
ended = Event()
# Set once who read standard output has closed it, as `| head` does.
reader_gone = Event()


# Descriptors of standard output and standard error.
_PRINTED = 1, 2


class _Pipe(io.FileIO):
    """Standard output that discards text once its reader is gone, so that the command goes on and writes its files."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            reader_gone.set()
            drop_output()
            return memoryview(data).nbytes


def outlive_reader() -> None:
    """Make a closed standard output no longer end the command; its exit code reports it."""
    reader_gone.clear()
    out = sys.stdout
    # As Python opens it, with a buffer or, by -u, without one.
    if type(out) is io.TextIOWrapper and type(getattr(out.buffer, "raw", out.buffer)) is io.FileIO and not out.isatty():
        pipe = io.BufferedWriter(_Pipe(out.fileno(), "w", closefd=False))
        sys.stdout = io.TextIOWrapper(
            pipe, out.encoding, out.errors, line_buffering=out.line_buffering, write_through=out.write_through
        )


@contextmanager
def heed_signals() -> Iterator[None]:
    """Context in which the signals that end a command raise `KeyboardInterrupt` on the main thread.

    So open files are cleaned up.
    """
    for each in (terminated, hung_up, ended):
        each.clear()
    if current_thread() is not main_thread():
        yield
        return
    before, report = [(one, signal.signal(one, end)) for one in ending_signals()], sys.unraisablehook
    sys.unraisablehook = partial(_report_discarded, report)
    try:
        yield
    finally:
        sys.unraisablehook = report
        for one, handler in before:
            signal.signal(one, handler)


def _report_discarded(report: Callable[[sys.UnraisableHookArgs], object], found: sys.UnraisableHookArgs) -> None:
    """Report an exception that Python discards, unless it is that of a signal, for which `raise_if_ended` stands in."""
    if not (ended.is_set() and found.exc_type is KeyboardInterrupt):
        report(found)


def end(number: int, _frame: FrameType | None) -> None:
    """Signal handler that ends the command at once with a `KeyboardInterrupt`; it records that, and which signal."""
    ended.set()
    record(number)
    raise KeyboardInterrupt


def record(number: int) -> None:
    """Record that a signal ended the command; after SIGHUP a terminal is written to no more, since it is gone."""
    if number != signal.SIGINT:
        terminated.set()
    if number == HANG_UP:
        hung_up.set()
        for stream in _PRINTED:
            with suppress(OSError):
                if stat.S_ISCHR(os.fstat(stream).st_mode):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def raise_if_ended() -> None:
    """Raise `KeyboardInterrupt` if a signal has come whose exception was discarded.

    Compiled libraries, as they are loaded, and Python's own `PyObject_HasAttr` and `PyDict_GetItem` discard any
    exception of the Python code that they call, and the signal's handler may run in that code; so may it in a weak
    reference's callback, such as the one by which an import frees its lock.
    """
    if ended.is_set():
        raise KeyboardInterrupt


def leave(code: int) -> NoReturn:
    """End the process with an exit code.

    After a signal Python's own end is not used: Python kills itself by SIGINT, whatever the exit code, if an interrupt
    happened while a compiled library ran code at its import.
    """
    if code in (Exit.INTERRUPTED, Exit.TERMINATED, Exit.HUNG_UP):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def exit_code(code: int) -> int:
    """Return the exit code to report for a command that ended with `code`.

    Another one after SIGTERM, SIGHUP or a closed output.
    """
    if code == Exit.DONE and reader_gone.is_set():
        return Exit.READER_GONE
    if code == Exit.INTERRUPTED and terminated.is_set():
        return Exit.HUNG_UP if hung_up.is_set() else Exit.TERMINATED
    return code


def drop_output() -> None:
    """Discard further standard output, so that buffered text cannot fail at the end of the program."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
