"""Subsolver: large-neighbourhood search by CP-SAT over windows of the best schedule's tasks.

It does not serve problems with overlapped blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from formulations.variables.literals import TooLong
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Work
from solver.parameters import tunable, tuned
from solver.tasks.placing import jobs_placed_as, schedule_of
from solver.tasks.window_search import WindowSearch


@dataclass(frozen=True)
@tunable
class Windows:
    """Free the order of some tasks (a window) of the best schedule and solve it with CP-SAT, again and again.

    A slice of counted work has a fixed number of windows. That number is `counted_windows`.
    """

    counted_windows: int = tuned(6, "windows in a slice of counted work", 1, 1000)
    name: str = "windows"
    parallel: bool = True
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        return not search.problem.network.blocks and not search.very_long

    def kernels(self, _: Search) -> Kernels | None:
        return None

    def work(self, search: Search) -> Work:
        windows, known = None, None
        while True:
            slice_ = yield
            if windows is None or search.incumbent.value != known:
                placed = jobs_placed_as(search.problem, search.incumbent.timeline)
                if placed is None:
                    return
                windows = WindowSearch(placed, search.limits)
            solved, most = 0, self.counted_windows if search.clock.counts_work else inf
            while not search.done() and solved < most and not slice_.over():
                solved += 1
                try:
                    better = windows.step(slice_.left(), search.stop)
                except TooLong as reason:
                    search.incumbent.note(f"CP-SAT was not asked for better orders in windows: {reason}")
                    return
                schedule = schedule_of(windows.placed, "optimised") if better else None
                if schedule is not None:
                    search.offer_order(schedule)
            known = search.incumbent.value
