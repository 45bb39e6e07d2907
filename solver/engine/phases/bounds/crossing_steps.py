"""Phase: lower bounds by crossings of steps, where memory does not admit all micro-batches of a chain at once.

Where passes overlap, those by crossings with blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.gap import gap
from solver.bounds.crossing_blocks.bound import KIND as WITH_BLOCKS
from solver.bounds.crossing_blocks.bound import crossing_block_bounds
from solver.bounds.crossing_steps.bound import KIND, WORK, crossing_step_bounds
from solver.bounds.crossing_steps.in_a_row import LABELS_IN_A_ROW, bounds_in_a_row
from solver.bounds.crossing_steps.steps import walked_chains
from solver.engine.cheapest_modes import cheapest_modes_prove_nothing
from solver.engine.kernels import BLOCK_KERNELS, STEP_KERNELS
from solver.engine.meanwhile import argue_meanwhile
from solver.engine.search import Search
from solver.step_orders.search import order_count

# Labels for a unit of counted work, which is about a second.
_WORK_A_UNIT = 1_000_000
# Labels where passes overlap: more of them, or more devices, have not been seen to prove more.
_WORK_WITH_BLOCKS = 3_000_000


@dataclass(frozen=True)
class CrossingSteps:
    """On more and more devices, within a share of the time; the check of the last takes as long again.

    `widths` are how many labels of a state are kept distinct. `again` is for more of them, where what was proved comes
    to `near` the lower bound, or the first time the code was still being compiled; not where CP-SAT refutes more, nor
    where modes are open and they prove no more than other bounds. Where a gap of no more than `above` is left, better
    schedules are looked for first. `again` is for problems of which all devices of the only chain have `few_states` in
    all layers, or for the others.
    """

    share: float = 0.1
    widths: tuple[int, ...] = (8, 64)
    again: bool = False
    near: float = 0.98
    above: float = 0.0
    few: bool = False
    few_states: int = 2_000_000
    name: str = "crossings of steps"

    def applies(self, search: Search) -> bool:
        """Where memory is short."""
        problem, state = search.problem, search.incumbent.state
        if not search.engine.raise_bounds or not self._memory_is_short(search):
            return False
        if state.value is not None and gap(state.value, state.lower_bound) <= self.above:
            return False
        if problem.overlaps:
            # With several chains, passes of others are left out, and so is most of what decides.
            one_chain = len([*walked_chains(problem)]) == 1
            return one_chain and all(one.kind != WITH_BLOCKS for one in state.certificates)
        proved = [one.value for one in state.certificates if one.kind == KIND]
        meant = not self.again or self._has_few_states(problem) == self.few
        if not proved or not meant:
            return meant
        if not self.again or search.refutable or cheapest_modes_prove_nothing(search):
            return False
        return max(proved) >= self.near * float(state.lower_bound)

    def run(self, search: Search) -> None:
        clock = search.clock
        blocks = search.problem.overlaps
        work = _WORK_WITH_BLOCKS if blocks else WORK
        if clock.counts_work:
            work = min(work, int(self.share * (search.limits.deterministic or 0) * _WORK_A_UNIT))
        if not search.compiled(BLOCK_KERNELS if blocks else STEP_KERNELS, self.share):
            return
        # The check of the last takes as long again, and longer beside a local search.
        argue_meanwhile(search, self._bounds(search, work), min(clock.allowed(self.share), clock.allowed() / 2.5))

    def _bounds(self, search: Search, work: int) -> Iterator[Certificate]:
        problem, stop = search.problem, search.stop
        if problem.overlaps:
            yield from crossing_block_bounds(problem, stop, self.widths, work)
            return
        if not self.again:
            yield from bounds_in_a_row(problem, stop, min(work, LABELS_IN_A_ROW))
        yield from crossing_step_bounds(problem, stop, self.widths, work)

    def _has_few_states(self, problem: Problem) -> bool:
        states = order_count(problem)
        return states is not None and states <= self.few_states

    def _memory_is_short(self, search: Search) -> bool:
        """Whether on some device not all micro-batches of a chain fit."""
        problem = search.problem
        for chain in walked_chains(problem):
            held = [0] * problem.devices
            for stage in chain:
                held[problem.placement.stage_device[stage]] += problem.stages[stage].activation
            count = len(problem.microbatches_of[chain[0]])
            if any(room is not None and room < count * own for room, own in zip(problem.room, held, strict=True)):
                return True
        return False
