"""Phase: schedules read off orders of the steps of a chain, where these have few states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pipesched.results.gap import gap
from solver.backends.interruptible import run_within
from solver.engine.kernels import ORDER_KERNELS
from solver.engine.meanwhile import improving_meanwhile
from solver.engine.search import Search
from solver.local_search.units.operation_units import modes_matter
from solver.step_orders.pace import Pace
from solver.step_orders.schedules import schedule_with
from solver.step_orders.search import diagram_of, order_count, step_count, step_order

# Seconds for the schedules once the orders are through, no more than these were given.
_TO_END = 2.0


@dataclass(frozen=True)
class StepOrders:
    """With as many orders of each state as its share of the time is enough for.

    Where a schedule is further than `near` from the bound, and at so many orders a second one of each state is through
    in the share; where work is counted, so many alone.
    """

    share: float = 0.3
    near: float = 0.002
    orders_a_second: int = 2_000_000
    counted_orders: int = 100_000
    most: int = 128
    name: str = "orders of steps"

    def applies(self, search: Search) -> bool:
        """Where modes are open orders below a value say more; schedules of very long problems come from shorter ones.

        Those of small problems local search finds, and CP-SAT needs the time.
        """
        state, problem = search.incumbent.state, search.problem
        if state.value is None or gap(state.value, state.lower_bound) <= self.near:
            return False
        if search.chains is not None or search.very_long or search.refutable or modes_matter(problem):
            return False
        orders = order_count(problem)
        if search.clock.counts_work:
            return orders is not None and orders <= self.counted_orders
        return orders is not None and orders <= self.orders_a_second * search.clock.left(self.share)

    def run(self, search: Search) -> None:
        clock = search.clock
        if clock.counts_work:
            self._offer(search, lambda *_: 1)
            return
        if not search.compiled(ORDER_KERNELS, self.share):
            return
        with improving_meanwhile(search):
            seconds = clock.allowed(self.share)
            pace = Pace(seconds, step_count(search.problem), self.most, search.done)
            run_within(seconds + min(_TO_END, seconds), search.stop, partial(self._offer, search, pace))

    def _offer(self, search: Search, width_of: Callable[[int, int], int]) -> None:
        """The schedule of the best order, from which local search may go on."""
        problem = search.problem
        diagram = diagram_of(problem, search.stop)
        order = None if diagram is None else step_order(diagram, width_of)
        schedule = None if diagram is None or order is None else schedule_with(problem, diagram, order)
        if schedule is not None:
            search.start_from(schedule)
