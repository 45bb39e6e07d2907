"""Phase: lower bounds by crossings of steps with whole weight passes, where little is left to prove."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.results.gap import gap
from solver.bounds.crossing_whole.bound import KIND, WORK, crossing_bounds_of_whole_weights
from solver.engine.kernels import WHOLE_KERNELS
from solver.engine.meanwhile import argue_meanwhile
from solver.engine.search import Search

# Labels for a unit of counted work, which is about a second.
_WORK_A_UNIT = 200_000


@dataclass(frozen=True)
class CrossingsWhole:
    """Orders that end below the incumbent are tried, within a share of the time; the check takes twice as long.

    Only once, and where a gap of no more than `below` is left: labels are not merged, and the more room there is below
    the value the more there are.
    """

    share: float = 0.15
    below: float = 0.005
    name: str = "crossings of steps with whole weight passes"

    def applies(self, search: Search) -> bool:
        """Where all but little is proved, and not in blocks."""
        state = search.incumbent.state
        if not search.engine.raise_bounds or search.problem.overlaps or state.value is None:
            return False
        left = gap(state.value, state.lower_bound)
        return 0 < left <= self.below and not any(one.kind == KIND for one in state.certificates)

    def run(self, search: Search) -> None:
        clock, state, work = search.clock, search.incumbent.state, WORK
        if clock.counts_work:
            work = min(work, int(self.share * (search.limits.deterministic or 0) * _WORK_A_UNIT))
        if not search.compiled(WHOLE_KERNELS, self.share):
            return
        assert state.value is not None
        bounds = crossing_bounds_of_whole_weights(
            search.problem, search.stop, float(state.lower_bound), float(state.value), work=work
        )
        argue_meanwhile(search, bounds, min(clock.allowed(self.share), clock.allowed() / 4))
