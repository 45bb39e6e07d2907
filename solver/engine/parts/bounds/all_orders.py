"""Part: lower bounds by decision diagrams of all orders on more and more devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipesched.results.certificate import Certificate
from solver.diagram.all_orders import bounds_of_all_orders
from solver.engine.diagram_bounds import DiagramBounds
from solver.engine.search import Search
from solver.engine.slices import Slice
from solver.tuning import LABELS_A_SECOND, MOST_LABELS, WIDTHS


@dataclass(frozen=True)
class AllOrders(DiagramBounds):
    """On more and more devices, with so many labels of a state."""

    name: str = "diagrams of all orders"

    def bounds(self, search: Search, slice_: Slice, /) -> Iterator[Certificate]:
        work = slice_.counted(LABELS_A_SECOND) or MOST_LABELS
        return bounds_of_all_orders(search.problem, search.stop, WIDTHS, work)
