"""Subsolver: lower bounds by decision diagrams over all orders of growing sets of devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from threading import Event

from pipesched.problem.quantities import Ticks
from pipesched.results.certificate import Certificate
from solver.diagram.all_orders import bounds_of_all_orders
from solver.diagram.device_sets import Trial
from solver.engine.claims import claimed
from solver.engine.diagram_bounds import DiagramBounds
from solver.engine.search import Search
from solver.engine.slices import Work


@dataclass(frozen=True)
class AllOrders(DiagramBounds):
    """Decision-diagram bounds over all orders, without a threshold.

    Under a deterministic limit a slice restarts with the set of devices at which the last one ended.
    """

    name: str = "diagrams of all orders"

    def work(self, search: Search) -> Work:
        return claimed(search, partial(self.bounds, search, done={}))

    def bounds(
        self, search: Search, stop: Event, work: int, /, done: dict[Trial, Ticks] | None = None
    ) -> Iterator[Certificate]:
        return bounds_of_all_orders(search.problem, stop, work=work, done=done)
