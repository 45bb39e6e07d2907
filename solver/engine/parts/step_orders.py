"""Part: schedules read off a restricted decision diagram of the steps of a chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil

from solver.backends.interruptible import run_within
from solver.engine.kernels import ORDER_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.local_search.units.operation_units import modes_matter
from solver.step_orders.pace import Pace
from solver.step_orders.schedules import schedule_with
from solver.step_orders.search import Diagram, diagram_of, order_count, step_count, step_order

# Seconds for the schedules once the orders are through, no more than these were given.
_TO_END = 2.0
# Orders of a state that stay; below a value one after the other.
_MOST, _WIDTHS = 128, (1, 2, 4, 8, 16, 32, 64, 128)
# Values that orders shall end below, as shares of the gap. Below a smaller one fewer orders are looked at, and those
# that stay are better.
_SHARES = (Fraction(1, 4), Fraction(1, 2), Fraction(1))


@dataclass(frozen=True)
class StepOrders:
    """With as many orders of each state as its slice is enough for.

    Where full backwards gain, there is a choice at each backward, and orders that cannot end below a value are left
    out. Not where it takes longer than the limit to look at `orders_a_second` of them, one of each state; where work is
    counted, at so many alone.
    """

    orders_a_second: int = 2_000_000
    counted_orders: int = 100_000
    name: str = "orders of steps"
    parallel: bool = False
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        if search.chains is not None or search.very_long or not search.plain_passes:
            return False
        orders = order_count(search.problem)
        counted = search.clock.counts_work
        most = self.counted_orders if counted else self.orders_a_second * search.clock.left()
        return orders is not None and orders <= most

    def kernels(self, _: Search) -> Kernels:
        return ORDER_KERNELS

    def work(self, search: Search) -> Work:
        offer = _offer_below if modes_matter(search.problem) else _offer
        while True:
            slice_ = yield
            seconds = slice_.left()
            run_within(seconds + min(_TO_END, seconds), search.stop, partial(offer, search, slice_))
            if not slice_.over():
                return


def _offer(search: Search, slice_: Slice) -> None:
    """The schedule of the best order, from which local search may go on."""
    problem, counted = search.problem, search.clock.counts_work
    paced = Pace(slice_.left(), step_count(problem), _MOST, search.done)
    width_of: Callable[[int, int], int] = (lambda *_: 1) if counted else paced
    diagram = diagram_of(problem, search.stop)
    order = None if diagram is None else step_order(diagram, width_of)
    schedule = None if diagram is None or order is None else schedule_with(problem, diagram, order)
    if schedule is not None:
        search.start_from(schedule)


def _offer_below(search: Search, slice_: Slice) -> None:
    """With ever more orders of each state."""
    diagram = diagram_of(search.problem, search.stop)
    if diagram is None or diagram.rest is None:
        return
    for width in _WIDTHS[: 1 if search.clock.counts_work else None]:
        _improve(search, diagram, width, lambda: search.done() or slice_.over())
        if search.done() or slice_.over():
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
