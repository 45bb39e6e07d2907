"""Phase: lower bounds by crossings of steps below a value, where crossings of steps come near the lower bound."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.results.gap import gap
from solver.bounds.crossing_below.bound import KIND, WORK, crossing_bounds_below
from solver.bounds.crossing_steps.bound import KIND as ALL_ORDERS
from solver.engine.cheapest_modes import cheapest_modes_prove_nothing
from solver.engine.kernels import BELOW_KERNELS
from solver.engine.meanwhile import argue_meanwhile
from solver.engine.search import Search

# Labels and states for a unit of counted work, which is about a second.
_WORK_A_UNIT = 300_000


@dataclass(frozen=True)
class CrossingsBelow:
    """Values between lower bound and incumbent are tried, within a share of the time; the check takes as long again.

    Only where a gap of more than `above` is left, and what crossings of steps proved comes to `near` the lower bound:
    the pass backwards takes seconds, and of problems with a smaller gap none was seen in which it proves more. Nor with
    few devices, all of which crossings of steps keep, nor where these take the cheapest of open modes in vain.
    """

    share: float = 0.25
    above: float = 0.02
    near: float = 0.98
    least_devices: int = 6
    name: str = "crossings of steps below a value"

    def applies(self, search: Search) -> bool:
        """Where crossings of steps, on some devices, decide."""
        state = search.incumbent.state
        if not search.engine.raise_bounds or search.problem.devices < self.least_devices:
            return False
        if state.value is None or gap(state.value, state.lower_bound) <= self.above:
            return False
        proved = [one.value for one in state.certificates if one.kind == ALL_ORDERS]
        if not proved or any(one.kind == KIND for one in state.certificates):
            return False
        return max(proved) >= self.near * float(state.lower_bound) and not cheapest_modes_prove_nothing(search)

    def run(self, search: Search) -> None:
        clock, state, work = search.clock, search.incumbent.state, WORK
        if clock.counts_work:
            work = min(work, int(self.share * (search.limits.deterministic or 0) * _WORK_A_UNIT))
        if not search.compiled(BELOW_KERNELS, self.share):
            return
        assert state.value is not None
        bounds = crossing_bounds_below(
            search.problem, search.stop, float(state.lower_bound), float(state.value), work=work
        )
        # The check takes as long again, and longer beside a local search.
        argue_meanwhile(search, bounds, min(clock.allowed(self.share), clock.allowed() / 3))
