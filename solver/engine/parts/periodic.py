"""Part: the best periodic pattern found, unrolled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from pipesched.errors import Deadlock
from solver.backends.interruptible import run_within
from solver.cyclic.problem_period import best_period, best_unrolled
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Work

# Seconds by which the search of a pattern may be late.
_LATE = 0.2


@dataclass(frozen=True)
class Periodic:
    """What long problems rest on, since its search does not grow with the number of micro-batches."""

    name: str = "cyclic schedules"
    parallel: bool = True
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        # Unequal micro-batches have no period.
        return search.chains is None and search.plain_passes

    def kernels(self, _: Search) -> Kernels | None:
        return None

    def work(self, search: Search) -> Work:
        while True:
            slice_ = yield
            limits = replace(slice_.limits(search.limits), target=None)
            find = partial(best_period, search.problem, limits, search.stop)
            found = run_within(slice_.left() + _LATE, search.stop, find)
            if found is None or (found.pattern is None and slice_.over()):
                continue
            if found.pattern is None:
                return
            try:
                search.start_from(best_unrolled(found.pattern, search.problem).schedule)
            except Deadlock:
                # Passes of no length may stand in a pattern in an order that waits for itself where it begins.
                return
            if found.optimal:
                return
