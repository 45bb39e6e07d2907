"""Phase: lower bounds by crossings of steps below a value, where crossings come near the lower bound."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.results.gap import gap
from solver.bounds.crossing_below.bound import KIND, WORK, crossing_bounds_below
from solver.bounds.crossing_blocks.bound import KIND as ALL_BLOCKS
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
    few devices, all of which crossings of steps keep, while those with blocks merge more labels; nor where crossings of
    steps take the cheapest of open modes in vain. `widths` are how many labels of a state are kept distinct, one after
    the other; with blocks the bound knows best.
    """

    share: float = 0.25
    share_with_blocks: float = 0.35
    above: float = 0.02
    near: float = 0.98
    least_devices: int = 6
    least_with_blocks: int = 3
    widths: tuple[int, ...] = (64, 512)
    name: str = "crossings of steps below a value"

    def applies(self, search: Search) -> bool:
        """Where crossings of steps, on some devices, decide."""
        state, blocks = search.incumbent.state, search.problem.overlaps
        least_devices = self.least_with_blocks if blocks else self.least_devices
        if not search.engine.raise_bounds or search.problem.devices < least_devices:
            return False
        if state.value is None or gap(state.value, state.lower_bound) <= self.above:
            return False
        proved = [one.value for one in state.certificates if one.kind == (ALL_BLOCKS if blocks else ALL_ORDERS)]
        if not proved or any(one.kind == KIND for one in state.certificates):
            return False
        in_vain = not blocks and cheapest_modes_prove_nothing(search)
        return max(proved) >= self.near * float(state.lower_bound) and not in_vain

    def run(self, search: Search) -> None:
        clock, state, work = search.clock, search.incumbent.state, WORK
        share, left = (self.share_with_blocks, 0.4) if search.problem.overlaps else (self.share, 1 / 3)
        if clock.counts_work:
            work = min(work, int(share * (search.limits.deterministic or 0) * _WORK_A_UNIT))
        if not search.compiled(BELOW_KERNELS, share):
            return
        assert state.value is not None
        widths = None if search.problem.overlaps else self.widths
        bounds = crossing_bounds_below(
            search.problem, search.stop, float(state.lower_bound), float(state.value), widths, work
        )
        # The check takes as long again, and longer beside a local search.
        argue_meanwhile(search, bounds, min(clock.allowed(share), left * clock.allowed()))
