"""Time limit of published schedules that search: they stop improving when the caller's condition says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_over: ContextVar[Callable[[], bool]] = ContextVar("over", default=lambda: False)


@contextmanager
def patience(over: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Context in which published schedules that search stop improving once `over()` is True.

    By default that is at once, so that they keep the order from which the search starts.
    """
    token = _over.set(over)
    try:
        yield
    finally:
        _over.reset(token)


def impatient() -> bool:
    """True if the search of a published schedule must stop now, by the condition of the enclosing `patience`.

    False outside of one.
    """
    return _over.get()()
