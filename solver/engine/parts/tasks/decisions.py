"""Part for problems whose activations may be offloaded or recomputed: annealing over orders and decisions."""

from __future__ import annotations

from dataclasses import dataclass

from solver.engine.cooling import falling_temperatures
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Work
from solver.tasks.decision_search import DecisionSearch
from solver.tasks.placing import jobs_placed_as
from solver.tuning import RUNS, TEMPERATURE


@dataclass(frozen=True)
class TaskDecisions:
    """Less and less hot within each slice; of counted work so many tries. It makes the last end of all small."""

    tries: int = RUNS
    name: str = "annealing of decisions"
    parallel: bool = False
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        return bool(search.problem.network.options)

    def kernels(self, _: Search) -> Kernels | None:
        return None

    def work(self, search: Search) -> Work:
        seed = search.limits.seed
        while True:
            slice_ = yield
            placed = jobs_placed_as(search.problem, search.incumbent.timeline)
            if placed is None:
                return
            decisions = DecisionSearch(placed.jobs, placed.start, seed)
            for temperature in falling_temperatures(search, slice_, self.tries, TEMPERATURE):
                if decisions.step(temperature) and decisions.best is not None:
                    search.offer_order(decisions.best)
            seed += 1
