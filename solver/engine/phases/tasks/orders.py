"""Phase for passes of several tasks: compiled simulated annealing over the order of every stream."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.jobs.placed_jobs import PlacedJobs
from solver.engine.search import Search
from solver.tasks.order_search import TaskOrderSearch
from solver.tasks.placing import jobs_placed_as, schedule_of

_NOT_COMPILED = (
    "annealing of tasks waited for its code to be compiled, as on a first run: the same solve may now find more"
)


@dataclass(frozen=True)
class TaskOrders:
    """A share of the time. It waits for its code to be compiled for some of that."""

    share: float = 0.5
    waiting_share: float = 0.5
    name: str = "annealing of stream orders"

    def applies(self, search: Search) -> bool:
        return search.incumbent.timeline is not None and not search.problem.network.options

    def run(self, search: Search) -> None:
        if not search.kernels_ready(self.waiting_share):
            search.incumbent.note(_NOT_COMPILED)
            return
        placed = jobs_placed_as(search.problem, search.incumbent.timeline)
        if placed is None:
            return

        def offer(better: PlacedJobs) -> None:
            schedule = schedule_of(better, "optimised")
            if schedule is not None:
                search.offer_order(schedule)

        try:
            orders = TaskOrderSearch(placed, search.limits, search.done)
        except ValueError:
            return
        orders.run(search.clock.left(self.share), offer)
