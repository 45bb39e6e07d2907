"""Subsolver: schedules from a restricted decision diagram whose steps are the passes of one chain of stages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil
from threading import Event

from pipesched.schedule.schedule import Schedule
from solver.diagram.params import DIAGRAMS
from solver.diagram.steps import NEVER
from solver.engine.kernels import ORDER_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Work, in_slices
from solver.local_search.units.operation_units import modes_matter
from solver.parameters import tunable, tuned
from solver.step_orders.schedules import schedule_with
from solver.step_orders.search import diagram_of, order_count, step_order


@dataclass(frozen=True)
@tunable
class StepOrders:
    """Search one chain's orders of passes in a restricted diagram, with 1, 2, 4, ... labels kept per state.

    Where work is counted there is one search, with one label per state. Where full backwards can be shorter than split
    ones, the mode of each backward is chosen too, and orders that cannot end below the incumbent's value are pruned. It
    does not serve problems in which one label of each state takes longer to expand than the time left.
    """

    orders_per_second: int = tuned(500_000, "orders looked at in a second, or unit of counted work", 1_000, 10**8)
    name: str = "orders of steps"
    parallel: bool = False
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        if search.chains is not None or search.very_long or search.problem.view is None:
            return False
        orders = order_count(search.problem)
        most = self.orders_per_second * (search.limits.deterministic or search.clock.left())
        return orders is not None and orders <= most

    def kernels(self, _: Search) -> Kernels:
        return ORDER_KERNELS

    def work(self, search: Search) -> Work:
        found = list[Schedule]()

        def take() -> None:
            while found:
                search.start_from(found.pop(0))

        if search.clock.counts_work:
            yield
            _look_for(search, found, search.stop)
            take()
        else:
            yield from in_slices(search.stop, partial(_look_for, search, found), take)


def _look_for(search: Search, found: list[Schedule], stop: Event) -> None:
    """Append to `found` the schedules of searches with 1, 2, 4, ... labels kept per state, until `stop` or the widest.

    One search only if work is counted.
    """
    diagram, width = diagram_of(search.problem, stop), 1
    while diagram is not None and width <= DIAGRAMS.width and not stop.is_set():
        value, threshold = search.incumbent.value, NEVER
        if modes_matter(search.problem):
            if diagram.completions is None or value is None:
                return
            threshold = ceil(value)
        order = step_order(diagram, width, stop, threshold)
        schedule = None if order is None else schedule_with(search.problem, diagram, order)
        if schedule is not None:
            found.append(schedule)
        width = DIAGRAMS.width + 1 if search.clock.counts_work else 2 * width
