"""A search from its first schedule to its end, and one of another problem within a slice of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipesched.problem.problem import Problem
from pipesched.schedule.timeline import Timeline
from solver.engine.allocation import Allocation
from solver.engine.kernels import LIST_KERNELS
from solver.engine.search import Engine, Search
from solver.engine.slices import Slice


def run(search: Search) -> None:
    """Every opening, then the parts until nothing is open or the time is over."""
    engine = search.engine
    if engine.parts and not search.clock.counts_work:
        # Of what is compiled one after the other, list scheduling takes least, and gives the first schedules.
        (LIST_KERNELS if search.plain_passes else search.kernels).begin()
    search.open()
    if engine.parts and search.incumbent.timeline is not None and not search.over():
        Allocation(search, engine.parts).run()


def searched(search: Search, problem: Problem, engine: Engine, slice_: Slice, start: Timeline | None = None) -> Search:
    """The search of another problem by an engine, over with the slice."""
    limits = replace(slice_.limits(search.limits), target=None)
    other = Search(problem, limits, lambda _: None, search.stop, engine, search.done)
    if start is not None:
        other.start_from_timeline(start)
    run(other)
    return other


def found_in(
    search: Search, problem: Problem, engine: Engine, slice_: Slice, start: Timeline | None = None
) -> Iterator[Timeline]:
    """What an engine finds of another problem in a slice: its best schedules, while the search is open."""
    other = searched(search, problem, engine, slice_, start)
    for timeline in (other.incumbent.timeline, *other.starts()):
        if timeline is not None and not search.done():
            yield timeline
