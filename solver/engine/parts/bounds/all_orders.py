"""Part: lower bounds by decision diagrams of all orders on more and more devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipesched.results.certificate import Certificate
from solver.diagram.all_orders import WORK, WORK_IN_A_ROW, bounds_in_a_row, bounds_of_all_orders
from solver.engine.claims import claimed
from solver.engine.kernels import DIAGRAM_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work

# Labels that a second is enough for.
_LABELS_A_SECOND = 1_000_000


@dataclass(frozen=True)
class AllOrders:
    """On three or more devices in a row, then on ever more of all, with so many labels of a state."""

    widths: tuple[int, ...] = (8, 64, 256)
    name: str = "diagrams of all orders"
    parallel: bool = False
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        return search.engine.raise_bounds and search.plain_passes

    def kernels(self, _: Search) -> Kernels:
        return DIAGRAM_KERNELS

    def work(self, search: Search) -> Work:
        def bounds(slice_: Slice) -> Iterator[Certificate]:
            work = min(WORK, slice_.counted(_LABELS_A_SECOND) or WORK)
            if not search.problem.overlaps:
                yield from bounds_in_a_row(search.problem, search.stop, min(work, WORK_IN_A_ROW))
            yield from bounds_of_all_orders(search.problem, search.stop, self.widths, work)

        return claimed(search, bounds)
