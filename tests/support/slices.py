"""One slice of a part of a search by itself."""

from __future__ import annotations

from solver.engine.search import Search, Subsolver
from solver.engine.slices import Slice


def run_slice(part: Subsolver, search: Search, slices: int = 1) -> None:
    """So many slices of a minute each, or of all the units that are counted."""
    work = part.work(search)
    next(work)
    for _ in range(slices):
        try:
            work.send(Slice(search.clock, search.clock.seconds, 60.0, search.limits.deterministic))
        except StopIteration:
            return
