"""Run of a search from its first schedule to its end."""

from __future__ import annotations

from solver.engine.allocation import Allocation
from solver.engine.kernels import LIST_KERNELS
from solver.engine.search import Search


def run(search: Search) -> None:
    """Run every construction heuristic, then the subsolvers until the gap is closed or the time is over.

    Subsolvers need a first schedule: without one the search ends after the construction heuristics.
    """
    engine = search.engine
    if engine.subsolvers and not search.clock.counts_work:
        # Of all kernels those of list scheduling compile fastest, and they give the first schedules.
        for kernels in (LIST_KERNELS, search.kernels) if search.problem.view else (search.kernels,):
            kernels.begin(search.workers)
    search.open()
    if engine.subsolvers and search.incumbent.timeline is not None and not search.over():
        with search.stopping_when_done(), search.incumbent.defects_noted("the subsolvers"):
            Allocation(search, engine.subsolvers).run()
