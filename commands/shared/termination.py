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
from typing import NoReturn, TextIO

from commands.shared.catalogue import Exit
from pipesched.ending_signals import HANG_UP, ending_signals

# Set once SIGTERM or SIGHUP has come, to tell them from Ctrl-C, and once SIGHUP has.
terminated, hung_up = Event(), Event()
# Set once any of the three has come.
ended = Event()
# Set once who read standard output has closed it, as `| head` does.
reader_gone = Event()
# The error with which standard output could not be written, as on a full disk; empty if it could.
output_errors: list[OSError] = []


# Descriptors of standard output and standard error.
_PRINTED = 1, 2


class _Lasting(io.TextIOWrapper):
    """Standard stream that discards text once it cannot be written, so that the command goes on and writes its files.

    `replaced` is the stream whose file this one has, and which would close it if it were dropped. A signal within these
    functions writes nothing twice, as it would in a file below the buffer.
    """

    replaced: TextIO
    failed: Callable[[OSError], object]

    def write(self, text: str, /) -> int:
        try:
            super().write(text)
            if self.write_through:  # as by -u; the buffer below keeps what it gets
                super().flush()
        except OSError as error:
            self.failed(error)
        return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self.failed(error)


def outlive_reader() -> None:
    """Make standard output and error that are closed, or cannot be written, no longer end the command.

    The exit code reports it of standard output. Terminals, and streams that are not Python's own, stay as they are.
    """
    reader_gone.clear()
    output_errors.clear()
    sys.stdout, sys.stderr = _lasting(sys.stdout, _output_failed), _lasting(sys.stderr, _discard_errors)


def _lasting(out: TextIO, failed: Callable[[OSError], object]) -> TextIO:
    """Return a lasting stream in place of a stream of Python's; of a terminal or another stream, itself.

    `failed` is called with each error of writing to it.
    """
    # As Python opens it, with a buffer or, by -u, without one.
    if (
        type(out) is not io.TextIOWrapper
        or type(getattr(out.buffer, "raw", out.buffer)) is not io.FileIO
        or out.isatty()
    ):
        return out
    buffer = io.BufferedWriter(io.FileIO(out.fileno(), "w", closefd=False))
    found = _Lasting(
        buffer, out.encoding, out.errors, line_buffering=out.line_buffering, write_through=out.write_through
    )
    found.replaced, found.failed = out, failed
    return found


def _output_failed(error: OSError) -> None:
    reader_gone.set() if isinstance(error, BrokenPipeError) else output_errors.append(error)
    drop_output()


def _discard_errors(_: OSError) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


@contextmanager
def heed_signals() -> Iterator[None]:
    """Context in which the signals that end a command raise `KeyboardInterrupt`, so that open files are cleaned up.

    At its beginning the events `terminated`, `hung_up` and `ended` are cleared. On other threads than the main one it
    does nothing else. Earlier handlers are restored at its end.
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
    """Record that the signal of this number ended the command; nothing for SIGINT (Ctrl-C).

    After SIGHUP a terminal is written to no more, since it is gone.
    """
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
    """Return the exit code to report for a command that ended with `code`; most often `code` itself.

    `DONE` becomes `READER_GONE` if nobody reads standard output any more, or `BAD_INPUT` if it could not be written;
    `INTERRUPTED` becomes `TERMINATED` after SIGTERM, or `HUNG_UP` after SIGHUP.
    """
    if code == Exit.DONE and reader_gone.is_set():
        return Exit.READER_GONE
    if code == Exit.DONE and output_errors:
        return Exit.BAD_INPUT
    if code == Exit.INTERRUPTED and terminated.is_set():
        return Exit.HUNG_UP if hung_up.is_set() else Exit.TERMINATED
    return code


def drop_output() -> None:
    """Discard further standard output, so that buffered text cannot fail at the end of the program."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
