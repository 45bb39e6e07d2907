"""Phase: a diagram with whole weight passes, a bound and often its schedule, where little is left to prove."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from pipesched.results.certificate import Certificate
from pipesched.results.gap import gap
from solver.diagram.whole_weights.bound import WORK, Orders, certificate_of_orders, whole_orders
from solver.engine.kernels import WHOLE_KERNELS
from solver.engine.meanwhile import argue_meanwhile
from solver.engine.search import Search
from solver.step_orders.whole import schedule_of_whole

# Labels for a unit of counted work, which is about a second.
_WORK_A_UNIT = 200_000
# Of the pass backwards: with more, labels were too many on every problem tried.
_NUMBERS = 5_000_000


@dataclass(frozen=True)
class WholeWeights:
    """Orders that end below the incumbent are tried, within a share of the time; the check takes twice as long.

    Only once, and where a gap of no more than `below` is left: labels are not merged, and the more room there is below
    the value the more there are. An order that ends below it is a schedule where all devices of the only chain are
    kept: of one stage a device often with that end.
    """

    share: float = 0.15
    below: float = 0.01
    name: str = "diagrams with whole weight passes"

    def applies(self, search: Search) -> bool:
        """Where all but little is proved, and not in blocks."""
        state = search.incumbent.state
        if not search.engine.raise_bounds or search.problem.overlaps or state.value is None:
            return False
        left = gap(state.value, state.lower_bound)
        return 0 < left <= self.below

    def run(self, search: Search) -> None:
        clock, state, work = search.clock, search.incumbent.state, WORK
        if clock.counts_work:
            work = min(work, int(self.share * (search.limits.deterministic or 0) * _WORK_A_UNIT))
        if not search.compiled(WHOLE_KERNELS, self.share):
            return
        assert state.value is not None
        found, value = list[Orders](), float(state.value)

        def bounds() -> Iterator[Certificate]:
            for orders in whole_orders(search.problem, search.stop, value, work=work, numbers=_NUMBERS):
                found.append(orders)
                if orders.least.ticks is not None:
                    yield certificate_of_orders(search.problem, orders, ceil(value))

        argue_meanwhile(search, bounds(), min(clock.allowed(self.share), clock.allowed() / 4))
        for orders in found:
            schedule = schedule_of_whole(search.problem, orders)
            if schedule is not None:
                search.start_from(schedule)
