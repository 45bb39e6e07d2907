"""How long a searched order may be looked for: as long as the caller has time."""

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
    """Whether the search of an order has to end."""
    return _over.get()()
