"""Time limit of heuristics that search: they stop when the caller's deadline has passed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_over: ContextVar[Callable[[], bool]] = ContextVar("over", default=lambda: False)


@contextmanager
def patience(over: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """In here searched orders are those found until `over`; by default what they start from."""
    token = _over.set(over)
    try:
        yield
    finally:
        _over.reset(token)


def impatient() -> bool:
    """True if a heuristic's search must stop."""
    return _over.get()()
