"""Phase: schedules read off orders of the steps of a chain, where these have few states."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

from formulations.window.operation_units import modes_matter
from pipesched.results.gap import gap
from solver.backends.interruptible import run_within
from solver.engine.kernels import ORDER_KERNELS
from solver.engine.meanwhile import improving_meanwhile
from solver.engine.search import Search
from solver.step_orders.schedules import schedule_with
from solver.step_orders.search import only_chain, order_count, step_order


@dataclass(frozen=True)
class StepOrders:
    """With as many orders of each state as half of the share is likely to do, then with more while time is left.

    Where a schedule is further than `near` from the bound, and at so many orders a second one of each state is through
    in the share; where work is counted, so many alone. `shares` are of a weight pass, for which a step waits.
    """

    share: float = 0.3
    near: float = 0.002
    orders_a_second: int = 1_000_000
    counted_orders: int = 100_000
    wider: int = 8
    most: int = 128
    shares: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    name: str = "orders of steps"

    def applies(self, search: Search) -> bool:
        """Where modes are open other orders are better, and schedules of very long problems come from shorter ones."""
        state, problem = search.incumbent.state, search.problem
        if state.value is None or gap(state.value, state.lower_bound) <= self.near:
            return False
        if search.chains is not None or search.very_long or modes_matter(problem):
            return False
        orders = order_count(problem)
        if search.clock.counts_work:
            return orders is not None and orders <= self.counted_orders
        return orders is not None and orders <= self.orders_a_second * search.clock.left(self.share)

    def run(self, search: Search) -> None:
        clock = search.clock
        if clock.counts_work:
            self._offer(search, 1, float("inf"))
            return
        ORDER_KERNELS.begin()
        until = clock.left() - clock.left(self.share)
        if not ORDER_KERNELS.wait(lambda: search.stop.is_set() or clock.left() <= until):
            return
        with improving_meanwhile(search):
            run_within(clock.allowed(self.share), search.stop, partial(self._widen, search))

    def _widen(self, search: Search) -> None:
        seconds, orders = search.clock.allowed(self.share), order_count(search.problem)
        end = time.monotonic() + seconds
        width = 1 if not orders else max(1, min(self.wider, int(self.orders_a_second * seconds / 2 / orders)))
        while width <= self.most and not search.done():
            began = time.monotonic()
            if not self._offer(search, width, end):
                return
            now = time.monotonic()
            times = min(self.wider, int(0.8 * (end - now) / (now - began)))
            if times < 2:
                return
            width *= times

    def _offer(self, search: Search, width: int, end: float) -> bool:
        """Whether an order was found in time."""
        problem = search.problem
        chain = only_chain(problem)
        order = step_order(problem, width, lambda: search.stop.is_set() or time.monotonic() > end)
        if chain is None or order is None:
            return False
        for share in self.shares:
            schedule = schedule_with(problem, chain, order, share)
            if schedule is not None:
                search.start_from(schedule)
        return True
