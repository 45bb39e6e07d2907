"""Phase: list schedules, by many priority rules."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.results.gap import gap
from solver.backends.interruptible import run_within
from solver.construction.list_scheduling import list_schedules
from solver.engine.search import Search


@dataclass(frozen=True)
class ListSchedules:
    """Only a start: until a share of the time has passed, or for the least share where phases before took that long.

    The first of them may take `first_share`, since all other search goes on from it. None of a very long problem that
    has a periodic schedule already, and none a second time. Where `far` is given, only with a gap above it, and not of
    a very long problem.
    """

    share: float = 0.2
    least_share: float = 0.1
    first_share: float = 0.4
    far: float | None = None
    name: str = "list schedules"

    def applies(self, search: Search) -> bool:
        if self.name in search.entered:
            return False
        if self.far is None:
            return not (search.has_starts and search.very_long)
        state = search.incumbent.state
        assert state.value is not None
        return gap(state.value, state.lower_bound) > self.far and not search.very_long

    def run(self, search: Search) -> None:
        clock = search.clock
        until = max(clock.share(self.share), clock.seconds + clock.share(self.least_share))
        run_within(clock.allowed(self.first_share), search.stop, lambda: self._try(search, until))

    def _try(self, search: Search, until: float) -> None:
        for schedule in list_schedules(search.problem, search.kernels_ready(0.0)):
            search.start_from(schedule)
            if search.done() or search.clock.seconds > until:
                return
