"""Runs an iterator on a background thread and collects its items."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

from solver.backends.interruptible import OutOfTime, end_thread

Item = TypeVar("Item")


class BackgroundIterator(Generic[Item]):
    """The items of an iterator run in the background; an error there is raised here."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._found: SimpleQueue[Item] = SimpleQueue()
        self._error: BaseException | None = None
        # No daemon: the interpreter must not end while a solver runs.
        self._thread = Thread(target=self._run, args=(items,))
        self._thread.start()

    def _run(self, items: Iterator[Item]) -> None:
        try:
            for item in items:
                self._found.put(item)
        except OutOfTime:
            return
        except BaseException as error:
            self._error = error

    def found(self) -> Iterator[Item]:
        """What has come since the last time."""
        while True:
            try:
                yield self._found.get_nowait()
            except Empty:
                break
        if self._error is not None:
            raise self._error

    @property
    def over(self) -> bool:
        """Whether nothing more will come, and all that has is taken."""
        return not self._thread.is_alive() and self._found.empty()

    def join(self, seconds: float) -> None:
        """Wait for its end, so long at most."""
        self._thread.join(seconds)

    def end(self, seconds: float) -> None:
        """Wait for its end for so long; then end it."""
        self.join(seconds)
        end_thread(self._thread)
