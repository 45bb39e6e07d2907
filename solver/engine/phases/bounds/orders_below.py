"""Phase: lower bounds by diagrams below a value, where those of all orders come near the lower bound."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.results.gap import gap
from solver.diagram.below import WORK, bounds_of_devices
from solver.engine.diagrams_so_far import cheapest_modes_prove_nothing, proved_by_all_orders
from solver.engine.kernels import DIAGRAM_KERNELS
from solver.engine.meanwhile import argue_meanwhile
from solver.engine.search import Search

# Labels and states for a unit of counted work, which is about a second.
_WORK_A_UNIT = 300_000


@dataclass(frozen=True)
class OrdersBelow:
    """Values between lower bound and incumbent are tried, within a share of the time; the check takes as long again.

    Only where a gap of more than `above` is left, and what diagrams of all orders proved comes to `near` the bound: the
    pass backwards takes seconds, and of problems with a smaller gap none was seen in which it proves more. Nor with
    few devices, all of which they keep, while those with blocks merge more labels; nor where they take the cheapest of
    open modes in vain.
    """

    share: float = 0.25
    share_with_blocks: float = 0.35
    above: float = 0.02
    near: float = 0.98
    least_devices: int = 6
    least_with_blocks: int = 3
    name: str = "diagrams below a value"

    def applies(self, search: Search) -> bool:
        """Where diagrams of all orders, on some devices, decide."""
        state, blocks = search.incumbent.state, search.problem.overlaps
        least_devices = self.least_with_blocks if blocks else self.least_devices
        if not search.engine.raise_bounds or search.problem.devices < least_devices:
            return False
        if state.value is None or gap(state.value, state.lower_bound) <= self.above:
            return False
        proved = proved_by_all_orders(search)
        if not proved:
            return False
        in_vain = not blocks and cheapest_modes_prove_nothing(search)
        return max(proved) >= self.near * float(state.lower_bound) and not in_vain

    def run(self, search: Search) -> None:
        clock, state, work = search.clock, search.incumbent.state, WORK
        share, left = (self.share_with_blocks, 0.4) if search.problem.overlaps else (self.share, 1 / 3)
        if clock.counts_work:
            work = min(work, int(share * (search.limits.deterministic or 0) * _WORK_A_UNIT))
        if not search.compiled(DIAGRAM_KERNELS, share):
            return
        assert state.value is not None
        proved, known = float(state.lower_bound), float(state.value)
        bounds = bounds_of_devices(search.problem, search.stop, proved, known, work=work)
        # The check takes as long again, and longer beside a local search.
        argue_meanwhile(search, bounds, min(clock.allowed(share), left * clock.allowed()))
