"""Limits of the page: sizes, times, and numbers of concurrent tasks."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

KIB, GIB = 2**10, 2**30


def _cores() -> int:
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Settings:
    """Limits of one server; `hosts` are names by which it may be reached, in addition to its addresses and
    `localhost`."""

    hosts: frozenset[str] = frozenset()
    text_bytes: int = 256 * KIB  # of a problem
    cells: int = 20_000  # stages times micro-batches
    tasks: int = 200_000  # of an iteration
    seconds: float = 300.0  # of a solve
    workers: int = field(default_factory=lambda: max(1, _cores() // 2))  # of a solve
    solves: int = 2  # at once
    waiting: int = 20  # solves in the queue
    quick_seconds: float = 20.0  # for all that is not a solve
    quick: int = field(default_factory=lambda: max(2, _cores()))  # such at once
    quick_waiting: int = 64
    idle_seconds: float = 600.0  # after which a solve that nobody looks at is forgotten
    kept: int = 50  # solves that are over
    memory_bytes: int = 8 * GIB  # of address space, of a process

    @property
    def body_bytes(self) -> int:
        """The most bytes of a request: a problem's text, escaped as JSON, and the other fields."""
        return 4 * self.text_bytes
