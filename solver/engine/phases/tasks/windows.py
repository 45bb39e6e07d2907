"""Phase for passes of several tasks: large-neighbourhood search windows of tasks, from the best schedules."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from solver.engine.search import Search
from solver.tasks.placing import jobs_placed_as, schedule_of
from solver.tasks.window_search import WindowSearch


@dataclass(frozen=True)
class TaskWindows:
    """A share of the time, or until so many windows in a row gain nothing; of counted work so many `windows`."""

    share: float = 1.0
    patience: float = inf
    windows: int = 20
    name: str = "windows of tasks"

    def applies(self, search: Search) -> bool:
        return search.incumbent.timeline is not None

    def run(self, search: Search) -> None:
        clock = search.clock
        until = clock.seconds + clock.left(self.share)
        placed = jobs_placed_as(search.problem, search.incumbent.timeline)
        if placed is None:
            return
        windows, vain, solved = WindowSearch(placed, search.limits), 0, 0
        while vain < self.patience and (solved < self.windows if clock.counts_work else clock.seconds < until):
            better = windows.step(until - clock.seconds, search.stop)
            vain, solved = 0 if better else vain + 1, solved + 1
            schedule = schedule_of(windows.placed, "optimised") if better else None
            if schedule is not None:
                search.offer_order(schedule)
            if search.done():
                return
