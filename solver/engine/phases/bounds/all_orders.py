"""Phase: lower bounds by diagrams of all orders, where memory does not admit all micro-batches of a chain at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.gap import gap
from solver.diagram.all_orders import WORK, WORK_IN_A_ROW, bounds_in_a_row, bounds_of_all_orders
from solver.diagram.steps import walked_chains
from solver.engine.diagrams_so_far import cheapest_modes_prove_nothing, proved_by_all_orders
from solver.engine.kernels import DIAGRAM_KERNELS
from solver.engine.meanwhile import argue_meanwhile
from solver.engine.search import Search
from solver.step_orders.search import order_count

# Labels for a unit of counted work, which is about a second.
_WORK_A_UNIT = 1_000_000
# Labels where passes overlap: more of them, or more devices, have not been seen to prove more.
_WORK_WITH_BLOCKS = 3_000_000


@dataclass(frozen=True)
class AllOrders:
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
    name: str = "diagrams of all orders"

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
            return one_chain and not proved_by_all_orders(search)
        proved = proved_by_all_orders(search)
        meant = not self.again or self._has_few_states(problem) == self.few
        if not proved or not meant:
            return meant
        if not self.again or search.refutable or cheapest_modes_prove_nothing(search):
            return False
        return max(proved) >= self.near * float(state.lower_bound)

    def run(self, search: Search) -> None:
        clock = search.clock
        work = _WORK_WITH_BLOCKS if search.problem.overlaps else WORK
        if clock.counts_work:
            work = min(work, int(self.share * (search.limits.deterministic or 0) * _WORK_A_UNIT))
        if not search.compiled(DIAGRAM_KERNELS, self.share):
            return
        # The check of the last takes as long again, and longer beside a local search.
        argue_meanwhile(search, self._bounds(search, work), min(clock.allowed(self.share), clock.allowed() / 2.5))

    def _bounds(self, search: Search, work: int) -> Iterator[Certificate]:
        if not self.again and not search.problem.overlaps:
            yield from bounds_in_a_row(search.problem, search.stop, min(work, WORK_IN_A_ROW))
        yield from bounds_of_all_orders(search.problem, search.stop, self.widths, work)

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
