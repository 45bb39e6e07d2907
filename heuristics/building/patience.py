"""Time limit of published schedules that search: they stop when the caller's deadline has passed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_over: ContextVar[Callable[[], bool]] = ContextVar("over", default=lambda: False)


@contextmanager
def patience(over: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Context in which searched orders stop improving once `over()`; by default at once, with their starting order."""
    token = _over.set(over)
    try:
        yield
    finally:
        _over.reset(token)


def impatient() -> bool:
    """True if the search of a published schedule must stop."""
    return _over.get()()
