"""Part: a decision diagram with whole weight passes, a bound and often its schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from pipesched.results.certificate import Certificate
from solver.diagram.whole_weights.bound import WORK, Orders, certificate_of_orders, whole_orders
from solver.engine.claims import claim_found
from solver.engine.kernels import WHOLE_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Work
from solver.step_orders.whole import schedule_of_whole

# Labels that a second is enough for.
_LABELS_A_SECOND = 200_000
# Of the pass backwards: with more, labels were too many on every problem tried.
_NUMBERS = 5_000_000


@dataclass(frozen=True)
class WholeWeights:
    """Orders that end below the incumbent are tried; labels are not merged, so that there are many where much is left.

    An order that ends below it is a schedule where all devices of the only chain are kept: of one stage a device often
    with that end.
    """

    name: str = "diagrams with whole weight passes"
    parallel: bool = False
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        return search.engine.raise_bounds and search.plain_passes and not search.problem.overlaps

    def kernels(self, _: Search) -> Kernels:
        return WHOLE_KERNELS

    def work(self, search: Search) -> Work:
        while True:
            slice_ = yield
            found, (_, value) = list[Orders](), search.open_ticks()
            work = min(WORK, slice_.counted(_LABELS_A_SECOND) or WORK)

            def bounds(value: float = value, work: int = work, found: list[Orders] = found) -> Iterator[Certificate]:
                for orders in whole_orders(search.problem, search.stop, value, work=work, numbers=_NUMBERS):
                    found.append(orders)
                    if orders.least.ticks is not None:
                        yield certificate_of_orders(search.problem, orders, ceil(value))

            ended = claim_found(search, bounds(), slice_)
            for orders in found:
                schedule = schedule_of_whole(search.problem, orders)
                if schedule is not None:
                    search.start_from(schedule)
            if ended and not search.clock.counts_work and search.open_ticks()[1] >= value:
                return
