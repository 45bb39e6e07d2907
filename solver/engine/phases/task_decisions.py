"""Phase for problems whose activations may be offloaded or recomputed: annealing over orders and decisions."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.tasks.jobs_of_problem import jobs_of
from solver.engine.search import Search
from solver.tasks.decision_search import DecisionSearch
from solver.tasks.placing import placed_in


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
        clock, best = search.clock, search.incumbent.timeline
        assert best is not None
        jobs = jobs_of(search.problem)
        placed = placed_in(jobs, best)
        if placed is None:
            return
        decisions = DecisionSearch(jobs, placed.start, search.limits.seed)
        begin, whole, tries = clock.seconds, clock.left(self.share), 0
        while not search.done():
            done = tries / self.tries if clock.counts_work else (clock.seconds - begin) / whole
            if done >= 1:
                return
            tries += 1
            if decisions.step(self.temperature * (1 - done)) and decisions.best is not None:
                search.offer_order(decisions.best)
