"""Phase for problems whose activations may be offloaded or recomputed: annealing over orders and decisions."""

from __future__ import annotations

from dataclasses import dataclass

from solver.engine.cooling import falling_temperatures
from solver.engine.search import Search
from solver.tasks.decision_search import DecisionSearch
from solver.tasks.placing import jobs_placed_as


@dataclass(frozen=True)
class TaskDecisions:
    """A share of the time, less and less hot; of counted work so many tries. It makes the last end of all small."""

    share: float = 0.2
    tries: int = 400
    temperature: float = 0.01
    name: str = "annealing of decisions"

    def applies(self, search: Search) -> bool:
        return bool(search.problem.network.options) and search.incumbent.timeline is not None

    def run(self, search: Search) -> None:
        placed = jobs_placed_as(search.problem, search.incumbent.timeline)
        if placed is None:
            return
        decisions = DecisionSearch(placed.jobs, placed.start, search.limits.seed)
        for temperature in falling_temperatures(search, self.share, self.tries, self.temperature):
            if decisions.step(temperature) and decisions.best is not None:
                search.offer_order(decisions.best)
