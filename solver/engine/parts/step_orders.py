"""Part: schedules read off a restricted decision diagram of the steps of a chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil

from solver.backends.interruptible import run_within
from solver.diagram.steps import NEVER
from solver.engine.kernels import ORDER_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.local_search.units.operation_units import modes_matter
from solver.step_orders.schedules import schedule_with
from solver.step_orders.search import Diagram, diagram_of, order_count, step_order
from solver.tuning import GRACE, LABELS_A_SECOND, WIDTH


@dataclass(frozen=True)
class StepOrders:
    """With twice as many orders of each state every time; where work is counted, with one. One that a slice ends begins
    anew in the next.

    Where full backwards gain, there is a choice at each backward, and orders that cannot end below the value of the
    best schedule are left out. Not where it takes longer than the limit to look at one order of each state.
    """

    name: str = "orders of steps"
    parallel: bool = False
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        if search.chains is not None or search.very_long or not search.plain_passes:
            return False
        orders = order_count(search.problem)
        return orders is not None and orders <= LABELS_A_SECOND * (search.limits.deterministic or search.clock.left())

    def kernels(self, _: Search) -> Kernels:
        return ORDER_KERNELS

    def work(self, search: Search) -> Work:
        diagram, width = None, 1
        while width <= WIDTH:
            slice_ = yield

            def over(slice_: Slice = slice_) -> bool:
                return search.done() or slice_.over()

            make = partial(diagram_of, search.problem, search.stop)
            diagram = diagram or run_within(slice_.left(), search.stop, make)
            if diagram is None and not slice_.over():
                return
            while diagram is not None and width <= WIDTH and not over():
                improve = partial(_improve, search, diagram, width, over)
                run_within(slice_.left() + min(GRACE, slice_.left()), search.stop, improve)
                if search.clock.counts_work:
                    return
                width *= 1 if over() else 2


def _improve(search: Search, diagram: Diagram, width: int, over: Callable[[], bool]) -> None:
    """The schedule of the best order with so many of each state, from which local search may go on."""
    value, below = search.incumbent.value, NEVER
    if modes_matter(search.problem):
        if diagram.rest is None or value is None:
            return
        below = ceil(value)
    order = step_order(diagram, lambda *_: 0 if over() else width, below)
    schedule = None if order is None else schedule_with(search.problem, diagram, order)
    if schedule is not None:
        search.start_from(schedule)
