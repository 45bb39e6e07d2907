"""Limits of the page: sizes, times, and numbers of concurrent tasks."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

KIB, GIB = 2**10, 2**30


def _cores() -> int:
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Settings:
    """Limits of one server: sizes of problems, times, and numbers of what runs at once.

    `hosts` are names by which it may be reached, in addition to its addresses and `localhost`. A problem's text has at
    most `text_bytes`, the problem at most `cells` stages times micro-batches and `tasks` tasks in an iteration. A solve
    has at most `workers` threads and `seconds`; `solves` run at once, and `waiting` more wait for their turn. One that
    no page watches for `idle_seconds` is forgotten; where there are more than `kept`, also those that are over and that
    no page watches. Whatever else a page asks for takes at most `quick_seconds`; `quick` of these run at once, and
    `quick_waiting` more wait. A process may take `memory_bytes` of address space.
    """

    hosts: frozenset[str] = frozenset()
    text_bytes: int = 256 * KIB
    cells: int = 20_000
    tasks: int = 200_000
    seconds: float = 300.0
    workers: int = field(default_factory=lambda: max(1, _cores() // 2))
    solves: int = 2
    waiting: int = 20
    quick_seconds: float = 20.0
    quick: int = field(default_factory=lambda: max(2, _cores()))
    quick_waiting: int = 64
    idle_seconds: float = 600.0
    kept: int = 50
    memory_bytes: int = 8 * GIB

    @property
    def body_bytes(self) -> int:
        """The most bytes of a request: a problem's text, escaped as JSON, and the other fields."""
        return 4 * self.text_bytes
