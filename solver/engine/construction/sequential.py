"""Construction heuristic: one micro-batch after the other, which fits in every feasible problem of plain passes."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.deadline import Deadline, within
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.engine.search import Search
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class Sequential:
    """Schedule of one micro-batch after the other, offered where no schedule is known.

    It may take `least_seconds` even beyond the time limit.
    """

    least_seconds: float = tuned(1.0, "s, even beyond the time limit", 0, 10)
    name: str = "one micro-batch after the other"

    def applies(self, search: Search) -> bool:
        return search.incumbent.timeline is None

    def run(self, search: Search) -> None:
        seconds = max(self.least_seconds, search.clock.allowed())
        within(Deadline.after(seconds, search.stop), lambda: self._offer(search))

    def _offer(self, search: Search) -> None:
        """Offer the schedule if it is valid.

        It may be invalid where pieces of micro-batches keep memory for later pieces, or parameters are gathered;
        `TaskSchedules` tries the same order with the passes that gather them.
        """
        timeline = best_times(search.problem, sequential(search.problem))
        if not validate(timeline):
            search.incumbent.offer(timeline)
