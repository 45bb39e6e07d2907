"""Phase: crossings of steps with whole weight passes on one device in the first rounds, where all devices are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipesched.results.certificate import Certificate
from pipesched.results.gap import gap
from solver.bounds.crossing_some_whole.bound import KIND, WHOLE_ROUNDS, WORK, bounds_with_some_whole
from solver.bounds.crossing_steps.bound import crossing_step_bounds
from solver.engine.cheapest_modes import cheapest_modes_prove_nothing
from solver.engine.kernels import SOME_WHOLE_KERNELS, STEP_KERNELS
from solver.engine.meanwhile import argue_meanwhile
from solver.engine.search import Search
from solver.step_orders.search import order_count

# Labels for a unit of counted work, which is about a second.
_WORK_A_UNIT = 500_000
_FEW_LABELS = (8,)  # of a state


@dataclass(frozen=True)
class CrossingsSomeWhole:
    """Within a share of the time; the check takes up to twice as long.

    Once, where a gap of more than `above` is left, devices have several stages, all devices of the only chain have
    `few_states`, and crossings of steps with few labels come to `near` the lower bound. Where each device has one
    stage, whole weight passes on all devices are tried below a value.
    """

    share: float = 0.3
    above: float = 0.0
    near: float = 0.98
    few_states: int = 2_000_000
    rounds: int = WHOLE_ROUNDS
    name: str = KIND

    def applies(self, search: Search) -> bool:
        """Where memory is short, so that weight passes are in the way, and not in blocks."""
        state, problem = search.incumbent.state, search.problem
        if not search.engine.raise_bounds or problem.overlaps or self.name in search.entered or search.refutable:
            return False
        if state.value is not None and gap(state.value, state.lower_bound) <= self.above:
            return False
        if cheapest_modes_prove_nothing(search):
            return False
        states = order_count(problem)
        several = any(len(held) > 1 for held in problem.placement.stages_of)
        return several and states is not None and states <= self.few_states

    def run(self, search: Search) -> None:
        clock, work = search.clock, WORK
        if clock.counts_work:
            work = min(work, int(self.share * (search.limits.deterministic or 0) * _WORK_A_UNIT))
        if not search.compiled(STEP_KERNELS, self.share) or not search.compiled(SOME_WHOLE_KERNELS, self.share):
            return
        argue_meanwhile(search, self._bounds(search, work), min(clock.allowed(self.share), clock.allowed() / 3))

    def _bounds(self, search: Search, work: int) -> Iterator[Certificate]:
        """Few labels, and no whole weight passes, tell whether many are worth their time."""
        problem, stop, least = search.problem, search.stop, self.near * float(search.incumbent.lower_bound)
        for found in crossing_step_bounds(problem, stop, _FEW_LABELS, work):
            yield found
            if found.value >= least:
                yield from bounds_with_some_whole(problem, stop, rounds=self.rounds, work=work)
                return
