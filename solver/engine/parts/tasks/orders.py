"""Part for passes of several tasks: compiled simulated annealing over the order of every stream."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.jobs.placed_jobs import PlacedJobs
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Work
from solver.tasks.order_search import TaskOrderSearch
from solver.tasks.placing import jobs_placed_as, schedule_of


@dataclass(frozen=True)
class TaskOrders:
    """From the best schedule, cooling within each slice."""

    name: str = "annealing of stream orders"
    parallel: bool = True
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        return not search.plain_passes and not search.problem.network.options

    def kernels(self, search: Search) -> Kernels:
        return search.kernels

    def work(self, search: Search) -> Work:
        def offer(better: PlacedJobs) -> None:
            schedule = schedule_of(better, "optimised")
            if schedule is not None:
                search.offer_order(schedule)

        while True:
            slice_ = yield
            placed = jobs_placed_as(search.problem, search.incumbent.timeline)
            if placed is None:
                return
            try:
                orders = TaskOrderSearch(placed, search.limits, search.done)
            except ValueError:
                return
            orders.run(slice_.left(), offer)
