"""Phase for passes of several tasks: orders of passes become orders of tasks, interleaved as they get ready."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from formulations.tasks.jobs import jobs_of
from pipesched.errors import Deadlock
from pipesched.schedule.schedule import Schedule
from solver.backends.interruptible import run_within
from solver.construction.list_scheduling import list_schedules, sequential
from solver.engine.search import Search
from solver.engine.tuning import GRACE
from solver.tasks.dispatch import expanded


@dataclass(frozen=True)
class TaskSchedules:
    """The first schedules of a search at task level: of published orders, then of list schedules of passes.

    One micro-batch after the other, as the first of all, always fits.
    """

    share: float = 0.25
    name: str = "list scheduling of tasks"

    def applies(self, _: Search) -> bool:
        return True

    def run(self, search: Search) -> None:
        seconds = search.clock.allowed(self.share)
        run_within(max(seconds, GRACE), search.stop, lambda: self._try(search))

    def _try(self, search: Search) -> None:
        jobs = jobs_of(search.problem)
        for order in self._orders(search):
            for schedule in expanded(jobs, order):
                search.start_from(schedule)
            if search.done():
                return

    def _orders(self, search: Search) -> Iterator[Schedule]:
        """Orders of passes."""
        yield sequential(search.problem)
        for one in search.candidates:
            if one.timeline is not None:
                yield one.timeline.schedule
        try:
            yield from list_schedules(search.problem)
        except Deadlock:
            return
