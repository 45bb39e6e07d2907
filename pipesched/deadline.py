"""Deadlines: a time, or a stop by the user, after which work ends.

Work checks them itself: `within` runs work under a deadline, and loops of that work call `ask` between their steps, at
whatever depth. So functions that know nothing of a search (a simulator, a drawing) end within it, and cost nothing
outside. Work that asks before each step is late by one step at most; work that never asks is not ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from threading import Event
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Steps of a few microseconds each between two looks at the deadline. Measured over two million steps (Python 3.11):
# a look takes 0.25 us in one scope and 0.5 us within three, and a step between two looks 0.01 us; shared by 64 steps a
# look is below 0.3 % of a step of 2 us, and a loop is late by a part of a millisecond.
SHORT = 64
_GRACE = 0.5  # seconds that work has after a stop, to come to an end by itself with what it has found


class TimeLimitReached(BaseException):
    """Raised by `ask` in a loop whose deadline is over.

    It is a BaseException, like `asyncio.CancelledError`, so that code that records defects of a component ignores it.
    """


@dataclass(frozen=True)
class Deadline:
    """A deadline that expires at time `at` of `clock`, in seconds, or once `stop` is set.

    The default clock is wall time: on a machine shared with others a step takes more of it, and fewer steps fit.
    """

    at: float
    stop: Event = field(default_factory=Event)
    clock: Callable[[], float] = time.monotonic

    @staticmethod
    def after(seconds: float, stop: Event | None = None, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """Return the deadline `seconds` from now.

        `stop` is an event that ends it sooner, `clock` returns the time in seconds.
        """
        return Deadline(clock() + seconds, stop or Event(), clock)

    def left(self) -> float:
        """Return the seconds left; 0 after a stop, and after the time."""
        return 0.0 if self.stop.is_set() else max(0.0, self.at - self.clock())

    def expired(self) -> bool:
        """Return True once no further step may begin."""
        return self.left() <= 0

    def fits(self, seconds: float) -> bool:
        """Return True if a step of about `seconds` that cannot be interrupted would end in time; False after a stop."""
        return seconds < self.left()

    def sooner(self, seconds: float) -> Deadline:
        """Return the deadline `seconds` from now, or at this one's time if that is sooner; stop and clock stay."""
        return replace(self, at=min(self.at, self.clock() + seconds))


class _Scope:
    """A deadline under which work runs, together with the deadlines of enclosing scopes; any of these ends the work."""

    __slots__ = ("_around", "_at", "_clock", "_stop")

    def __init__(self, deadline: Deadline, around: _Scope | None) -> None:
        self._at, self._stop, self._clock, self._around = deadline.at, deadline.stop, deadline.clock, around

    def expired(self) -> bool:
        """Return True once any of the deadlines is over, after a stop half a second from the first check on."""
        if self._stop.is_set():
            self._at = min(self._at, self._clock() + _GRACE)
        return self._clock() >= self._at or (self._around is not None and self._around.expired())


_CURRENT: ContextVar[_Scope | None] = ContextVar("deadline", default=None)


def within(deadline: Deadline, work: Callable[[], Result]) -> Result | None:
    """Run work under a deadline; returns its result, or None if one of its loops asked after the deadline.

    The work begins even if the deadline is over, and after a stop has half a second from the first question on. If such
    calls are nested, the sooner deadline counts; where that of an outer call is over too, `TimeLimitReached` passes on
    to it. The work runs in the caller's thread. A thread that it starts is under the deadline only if it runs in a copy
    of the context (`contextvars.copy_context`).
    """
    token = _CURRENT.set(_Scope(deadline, _CURRENT.get()))
    try:
        return work()
    except TimeLimitReached:
        pass
    finally:
        _CURRENT.reset(token)
    ask()  # the work around this may have to end, too
    return None


def expired() -> bool:
    """Return True once the current work has to end; always False outside of `within`.

    After a stop that is half a second after the first question.
    """
    scope = _CURRENT.get()
    return scope is not None and scope.expired()


def ask() -> None:
    """Raise `TimeLimitReached` if the current work has to end; to be called between two steps of a long loop."""
    scope = _CURRENT.get()
    if scope is not None and scope.expired():
        raise TimeLimitReached


def asking(items: Iterable[Item], every: int = 1) -> Iterator[Item]:
    """Return an iterator over the items of a loop that calls `ask` before the first and then every `every`-th item.

    Outside of `within` it is a plain one: a loop that begins there asks nothing, also if it goes on inside.
    """
    return iter(items) if _CURRENT.get() is None else chain.from_iterable(_runs(iter(items), every))


def _runs(items: Iterator[Item], every: int) -> Iterator[Iterable[Item]]:
    """Yield the items in runs of `every`, calling `ask` before each run."""
    for first in items:
        ask()
        yield (first,) if every == 1 else chain((first,), islice(items, every - 1))
