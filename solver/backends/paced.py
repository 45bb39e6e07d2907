"""Work that pauses between slices: it runs on a thread of its own, which waits where it would query its stop event.

Work that proceeds in steps, and queries a stop event between them, need not know of slices: the query returns when its
next slice begins, so its state stays on its stack.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from threading import Event, Thread, current_thread

from pipesched.deadline import Deadline, ask, within

_POLL = 0.05  # seconds between looks at what may end a slice


class Paced(Event):
    """Stop event of `work(event)`, which runs on a thread of its own, slice by slice.

    The work queries this event from time to time. Between slices such a query blocks until the next slice begins. Once
    `stop` is set or `close` was called, the query returns True, so that the work ends. `ended`: the work has returned
    or raised an error.
    """

    def __init__(self, stop: Event, work: Callable[[Event], object]) -> None:
        super().__init__()
        self._stop, self._work = stop, work
        self._over: Callable[[], bool] = lambda: True
        self._turn, self._paused = Event(), Event()
        self._error: BaseException | None = None
        self.ended = False
        self._thread = Thread(target=self._run, daemon=True)

    def run(self, over: Callable[[], bool], late: Callable[[], bool] = lambda: False) -> bool:
        """Let the work run for one slice: until it queries this event while `over()` is True, or until it has ended.

        Returns True if the work is paused or has ended, False if neither happened before `late()` was True or the
        search was stopped. An error of the work is raised here. The first call starts the work.
        """
        self._over = over
        self._paused.clear()
        self._turn.set()
        if self._thread.ident is None:
            self._thread.start()
        while not self._paused.wait(_POLL):
            ask()
            if self._stop.is_set() or late():
                return False
        if self._error is not None:
            raise self._error
        return True

    def close(self) -> None:
        """End the work at its next query and wait for it, so that no compiled code outlives the search."""
        self.set()
        self._turn.set()
        if self._thread.ident is not None and self._thread is not current_thread():
            self._thread.join()

    def is_set(self) -> bool:
        """Called by the work: wait for the next slice if this one is over, and return True if the work must end."""
        if not self.stopped() and self._over():
            self._turn.clear()
            self._paused.set()
            if not self.stopped():
                self._turn.wait()
        return self.stopped()

    def stopped(self) -> bool:
        """Return True if the work must end; unlike `is_set` this never waits."""
        return super().is_set() or self._stop.is_set()

    @property
    def at_once(self) -> Event:
        """A stop event for other threads and deadlines: it is set as this one is, but a query never pauses the work."""
        return _AtOnce(self)

    def _run(self) -> None:
        try:
            within(Deadline(inf, self.at_once), partial(self._work, self))
        except BaseException as error:
            self._error = error
        finally:
            self.ended = True
            self._paused.set()


class _AtOnce(Event):
    def __init__(self, paced: Paced) -> None:
        super().__init__()
        self._paced = paced

    def is_set(self) -> bool:
        return self._paced.stopped()
