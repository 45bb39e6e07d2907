"""Phase: the best periodic pattern found, unrolled."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipesched.errors import Deadlock
from solver.cyclic.problem_period import best_period, best_unrolled
from solver.engine.search import Search


@dataclass(frozen=True)
class Periodic:
    """What long problems rest on, since its search does not grow with them.

    Problems of so many micro-batches a device are long. `share` of the time goes into the pattern.
    """

    share: float = 0.15
    least_microbatches_a_device: int = 4
    name: str = "cyclic schedules"

    def applies(self, search: Search) -> bool:
        # Unequal micro-batches have no period.
        return (
            search.chains is None
            and search.problem.microbatches >= self.least_microbatches_a_device * search.problem.devices
        )

    def run(self, search: Search) -> None:
        clock = search.clock
        limits = replace(search.limits, seconds=max(0.0, clock.left(self.share)), target=None)
        pattern = best_period(search.problem, limits, search.stop).pattern
        if pattern is None:
            return
        try:
            unrolled = best_unrolled(pattern, search.problem)
        except Deadlock:
            # Passes of no length may stand in a pattern in an order that waits for itself where it begins.
            return
        search.start_from(unrolled.schedule)
