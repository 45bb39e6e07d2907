"""Single slices of work of one subsolver."""

from __future__ import annotations

from solver.engine.search import Search, Subsolver
from solver.engine.slices import Slice


def run_slice(part: Subsolver, search: Search, slices: int = 1) -> None:
    """Run `slices` slices of a subsolver, each of a minute or of all counted units of the limits; ends when it is
    done."""
    work = part.work(search)
    next(work)
    for _ in range(slices):
        try:
            work.send(Slice(search.clock, search.clock.seconds, 60.0, search.limits.deterministic))
        except StopIteration:
            return
