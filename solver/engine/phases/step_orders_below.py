"""Phase: orders of steps that end below a value, where some backwards are better full and others split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil

from pipesched.results.gap import gap
from solver.backends.interruptible import run_within
from solver.engine.kernels import ORDER_KERNELS
from solver.engine.meanwhile import improving_meanwhile
from solver.engine.search import Search
from solver.local_search.units.operation_units import modes_matter
from solver.step_orders.schedules import schedule_with
from solver.step_orders.search import Diagram, diagram_of, order_count, step_order

# Values that orders shall end below, as shares of the gap. Below a smaller one fewer orders are looked at, and those
# that stay are better.
_SHARES = (Fraction(1, 4), Fraction(1, 2), Fraction(1))
# Seconds for the schedule once its order is through.
_TO_END = 2.0


@dataclass(frozen=True)
class StepOrdersBelow:
    """With a choice at each backward, with ever more orders of each state, for a share of the time.

    Where a schedule is further than `near` from the bound, and time is enough for so many orders a second, one of each
    state. Where work is counted, for so few alone, and with the first of `widths`.
    """

    share: float = 0.3
    near: float = 0.002
    widths: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    orders_a_second: int = 300_000
    counted_orders: int = 20_000
    name: str = "orders of steps below a value"

    def applies(self, search: Search) -> bool:
        """Without such a choice orders of steps say more; what is very long or refuted by CP-SAT is left to others."""
        state, problem, clock = search.incumbent.state, search.problem, search.clock
        if state.value is None or gap(state.value, state.lower_bound) <= self.near:
            return False
        if search.chains is not None or search.very_long or search.refutable or not modes_matter(problem):
            return False
        orders = order_count(problem)
        most = self.counted_orders if clock.counts_work else self.orders_a_second * clock.left(self.share)
        return orders is not None and orders <= most

    def run(self, search: Search) -> None:
        clock = search.clock
        if not search.compiled(ORDER_KERNELS, self.share):
            return
        with improving_meanwhile(search):
            until = -1.0 if clock.counts_work else clock.left() - clock.left(self.share)
            over = partial(_over, search, until)
            run_within(clock.allowed(self.share) + _TO_END, search.stop, partial(self._offer, search, over))

    def _offer(self, search: Search, over: Callable[[], bool]) -> None:
        diagram = diagram_of(search.problem, search.stop)
        if diagram is None or diagram.rest is None:
            return
        for width in self.widths[: 1 if search.clock.counts_work else None]:
            _improve(search, diagram, width, over)
            if over():
                return


def _improve(search: Search, diagram: Diagram, width: int, over: Callable[[], bool]) -> None:
    """Offer the best order with so many of each state that ends below the least of the values that one ends below."""
    for below in _values(search):
        order = step_order(diagram, lambda *_: 0 if over() else width, below)
        schedule = None if order is None else schedule_with(search.problem, diagram, order)
        if schedule is not None:
            search.start_from(schedule)
            return


def _values(search: Search) -> Iterator[int]:
    """Ticks above the lower bound, the last one the value of the best schedule."""
    state = search.incumbent.state
    if state.value is not None:
        for share in _SHARES:
            yield ceil(state.lower_bound + share * (state.value - state.lower_bound))


def _over(search: Search, until: float) -> bool:
    return search.done() or (not search.clock.counts_work and search.clock.left() <= until)
