"""Opening: one micro-batch after the other, a schedule that always fits, where no published one does."""

from __future__ import annotations

from dataclasses import dataclass

from solver.backends.interruptible import run_within
from solver.construction.list_scheduling import sequential
from solver.engine.search import Search
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class Sequential:
    """The first schedule of a search that has none."""

    least_seconds: float = tuned(1.0, "s, even beyond the time limit", 0, 10)
    name: str = "one micro-batch after the other"

    def applies(self, search: Search) -> bool:
        """Not where parameters are gathered: `TaskSchedules` tries this order with its gatherings, where these fit."""
        return search.incumbent.timeline is None and not any(stage.gather for stage in search.problem.stages)

    def run(self, search: Search) -> None:
        seconds = max(self.least_seconds, search.clock.allowed())
        run_within(seconds, search.stop, lambda: search.offer_order(sequential(search.problem)))
