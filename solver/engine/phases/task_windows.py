"""Phase for passes of several tasks: large-neighbourhood search windows of tasks, from the best schedules."""

from __future__ import annotations

from dataclasses import dataclass, replace

from formulations.tasks.jobs import jobs_of
from formulations.tasks.task_window import Placed
from solver.engine.search import Search
from solver.tasks.placing import placed_in, schedule_of
from solver.tasks.window_search import WindowSearch, improve


@dataclass(frozen=True)
class TaskWindows:
    """A share of the time; where work is counted instead, so many windows."""

    share: float = 1.0
    windows: int = 20
    name: str = "windows of tasks"

    def applies(self, search: Search) -> bool:
        return search.incumbent.timeline is not None

    def run(self, search: Search) -> None:
        best = search.incumbent.timeline
        assert best is not None
        clock = search.clock
        until = clock.seconds + clock.left(self.share)
        placed = placed_in(jobs_of(search.problem), best)
        if placed is None:
            return

        def left() -> float:
            return until - clock.seconds

        def better(found: Placed) -> bool:
            schedule = schedule_of(found, "optimised")
            if schedule is not None:
                search.offer_order(schedule)
            return not search.done()

        windows = WindowSearch(placed, replace(search.limits, seed=search.limits.seed))
        if not clock.counts_work:
            improve(windows, left, search.stop, better)
            return
        for _ in range(self.windows):
            if windows.step(left(), search.stop) and not better(windows.placed):
                return
