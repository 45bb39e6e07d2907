"""Phase: lower bounds by crossings of all chains, where several share the devices and the makespan counts."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.problem.problem import Objective
from pipesched.results.gap import gap
from solver.diagram.all_chains.bound import KIND, WORK, bounds_of_chains
from solver.diagram.steps import walked_chains
from solver.engine.kernels import CHAIN_KERNELS
from solver.engine.meanwhile import argue_meanwhile
from solver.engine.search import Search

# Labels for a unit of counted work, which is about a second.
_WORK_A_UNIT = 500_000


@dataclass(frozen=True)
class AllChains:
    """Once, where a gap of more than `above` is left, within a share of the time; the check takes as long again.

    Not with more chains than `most_chains`, as of unequal micro-batches: there are too many states.
    """

    share: float = 0.15
    above: float = 0.0
    most_chains: int = 4
    name: str = "diagrams of all chains"

    def applies(self, search: Search) -> bool:
        """Where a schedule is known, below whose value orders are followed."""
        problem, state = search.problem, search.incumbent.state
        if not search.engine.raise_bounds or problem.objective is not Objective.MAKESPAN:
            return False
        chains = len([*walked_chains(problem)])
        if not 2 <= chains <= self.most_chains or any(one.kind == KIND for one in state.certificates):
            return False
        return state.value is not None and gap(state.value, state.lower_bound) > self.above

    def run(self, search: Search) -> None:
        clock, state, work = search.clock, search.incumbent.state, WORK
        if clock.counts_work:
            work = min(work, int(self.share * (search.limits.deterministic or 0) * _WORK_A_UNIT))
        if not search.compiled(CHAIN_KERNELS, self.share):
            return
        assert state.value is not None
        bounds = bounds_of_chains(search.problem, search.stop, float(state.lower_bound), float(state.value), work=work)
        argue_meanwhile(search, bounds, min(clock.allowed(self.share), clock.allowed() / 2.5))
