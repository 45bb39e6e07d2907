"""Runs a solver, or any other work, so that it can be interrupted."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Generic, TypeVar

Result = TypeVar("Result")

_POLL = 0.05  # seconds between looks at clock and stop
# Seconds that work which was told to stop, or has been ended, may take to come to its end by itself.
_PATIENCE = 0.5
# Libraries that must not be left in the middle of being loaded or of compiling.
_NOT_WITHIN = ("importlib", "_frozen_importlib", "numba", "llvmlite")


def run_until(stop: Event, work: Callable[[], Result], interrupt: Callable[[], object]) -> Result:
    """The result of the work, on a thread of its own: Python handles signals on the main one only, and while that runs.

    A stop that is asked for before a solver has begun would be lost, so it is repeated until the work is over.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        search = pool.submit(work)
        while True:
            try:
                return search.result(timeout=_POLL)
            except TimeoutError:
                if stop.is_set():
                    interrupt()
            except BaseException:
                while not search.done():
                    with suppress(OutOfTime):
                        interrupt()
                        wait([search], _POLL)
                raise


class Asking(Event):
    """An event that is set whenever a condition holds."""

    def __init__(self, holds: Callable[[], bool]) -> None:
        super().__init__()
        self._holds = holds

    def is_set(self) -> bool:
        """Now, which may change."""
        return self._holds()


class OutOfTime(BaseException):
    """Ends work in the middle. No error, so that no handler of errors takes it for one."""


def run_within(seconds: float, stop: Event, work: Callable[[], Result]) -> Result | None:
    """The result of the work, or None where that takes longer, or goes on after a stop.

    The work runs on a thread of its own and is ended by an exception between any two steps of Python, so it must leave
    nothing half done that matters. Solvers are to be run by `run_until` in it, which passes the exception on.
    """
    task = _Task(work)
    until = time.monotonic() + seconds
    try:
        while not task.over(_POLL):
            if stop.is_set():
                until = min(until, time.monotonic() + _PATIENCE)
            if time.monotonic() >= until:
                break
    except BaseException:
        task.end()
        raise
    if not task.over(0):
        task.end()
        return None
    if task.error is not None:
        raise task.error
    return task.result


class _Task(Generic[Result]):
    """Work on a thread of its own."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self.result: Result | None = None
        self.error: BaseException | None = None
        self._work, self._over = work, Event()  # no join: an exception in one makes a thread look dead that is not
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:
            self.error = error
        finally:
            self._over.set()

    def over(self, seconds: float) -> bool:
        """True if the task has ended, waiting at most `seconds`."""
        return self._over.wait(seconds)

    def end(self) -> None:
        end_thread(self._thread)


def end_thread(thread: Thread) -> None:
    """Raise `OutOfTime` in a thread, and wait for its end.

    A thread that waits so may be ended itself meanwhile: that has to wait, too, or it would go on with what the other
    one is still working on.
    """
    until, ended = 0.0, None
    with _ignored_in_silence():
        while thread.is_alive():
            try:
                if time.monotonic() >= until and _may_end(thread):
                    ident = ctypes.c_ulong(thread.ident or 0)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(OutOfTime))
                    until = time.monotonic() + _PATIENCE
                time.sleep(_POLL)
            except OutOfTime as error:
                ended = error
    if ended is not None:
        raise ended


@contextmanager
def _ignored_in_silence() -> Iterator[None]:
    """Python reports an exception that ends a thread, and reports and drops one that hits a finalizer.

    `OutOfTime` is no defect: in a finalizer it is raised again, and it ends a thread whose work was over already.
    """
    report, report_of_thread = sys.unraisablehook, threading.excepthook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is not OutOfTime:
            report(unraisable)

    def hook_of_thread(raised: threading.ExceptHookArgs) -> None:
        if raised.exc_type is not OutOfTime:
            report_of_thread(raised)

    sys.unraisablehook, threading.excepthook = hook, hook_of_thread
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook = report, report_of_thread


def _may_end(thread: Thread) -> bool:
    """True if the thread is outside of libraries that an exception would leave unusable.

    Nor may it be starting another thread, which until it runs has the identity of its creator: the exception would hit
    that one, and the creator wait for it forever.
    """
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if frame.f_code is Thread.start.__code__ or str(frame.f_globals.get("__name__", "")).startswith(_NOT_WITHIN):
            return False
        frame = frame.f_back
    return True
