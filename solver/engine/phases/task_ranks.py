"""Phase for passes of several tasks: simulated annealing over the ranks of list scheduling."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.tasks.schedule_of_starts import schedule_of_starts
from pipesched.errors import Deadlock
from solver.engine.cooling import falling_temperatures
from solver.engine.search import Search
from solver.tasks.placing import jobs_placed_as
from solver.tasks.rank_search import RankSearch


@dataclass(frozen=True)
class TaskRanks:
    """A share of the time, less and less hot; of counted work so many tries. Thousands of tasks are tried in seconds.

    What it makes small is the last end of all, under the span too.
    """

    share: float = 0.2
    tries: int = 100
    temperature: float = 0.002
    name: str = "annealing of tasks"

    def applies(self, search: Search) -> bool:
        return search.incumbent.timeline is not None

    def run(self, search: Search) -> None:
        placed = jobs_placed_as(search.problem, search.incumbent.timeline)
        if placed is None:
            return
        try:
            ranks = RankSearch(placed.jobs, placed.start, search.limits.seed)
        except Deadlock:
            return
        for temperature in falling_temperatures(search, self.share, self.tries, self.temperature):
            if ranks.step(temperature):
                schedule = schedule_of_starts(placed.jobs, ranks.best, "optimised")
                if schedule is not None:
                    search.offer_order(schedule)
