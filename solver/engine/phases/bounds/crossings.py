"""Phase: lower bounds by crossings, where memory admits so few micro-batches that round trips take longer than work."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.problem.problem import Problem
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing.bound import KIND, crossing_bounds, lines
from solver.bounds.crossing.states import count
from solver.engine.kernels import CROSSING_KERNELS
from solver.engine.meanwhile import argue_meanwhile
from solver.engine.search import Search


@dataclass(frozen=True)
class CrossingBounds:
    """More and more stages of a chain, within a share of the time; the check of the last takes as long again.

    With the memory of `least` of the work of a device or more round trips do not decide. `very_long` says that only
    very long problems have them here: their time does not grow with the number of micro-batches, and what is found in
    it proves more than other phases do. `most_states` says that only problems have them here of whose
    devices each has one stage, and of whose lines none has more states: all of it is through in seconds, and other
    phases end as soon as they come near it.
    """

    share: float = 0.2
    least: float = 0.8
    very_long: bool = False
    most_states: int | None = None
    name: str = "crossings"

    def applies(self, search: Search) -> bool:
        """Once; again only where the first time its code was still being compiled."""
        if any(one.kind == KIND for one in search.incumbent.state.certificates) or search.done():
            return False
        if self.very_long and not search.very_long:
            return False
        if self.most_states is not None and not _has_few_states(search.problem, self.most_states):
            return False
        return search.engine.raise_bounds and not search.problem.overlaps and self._round_trips_decide(search)

    def run(self, search: Search) -> None:
        if search.compiled(CROSSING_KERNELS, self.share):
            argue_meanwhile(search, crossing_bounds(search.problem, search.stop), search.clock.allowed(self.share))

    def _round_trips_decide(self, search: Search) -> bool:
        """Whether on the first device of a chain so many at once take nearly as long there and back as in work."""
        problem, paths = search.problem, Paths(search.problem)
        for line in lines(problem, paths):
            first = line.stages[0]
            trip = paths.forward[first] + paths.round_trip[first] + paths.rest[first]
            work = max(paths.forward[s] + paths.rest[s] for s in range(problem.placement.stages))
            if trip >= self.least * work * line.admitted[0]:
                return True
        return False


def _has_few_states(problem: Problem, most: int) -> bool:
    """Whether each device has one stage, and no line more states than that."""
    if problem.placement.stages > problem.devices or len(problem.placement.chains) > 1:
        return False
    return all(count(line) <= most for line in lines(problem, Paths(problem)))
