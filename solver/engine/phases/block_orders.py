"""Phase: beam search over the orders and overlapped blocks of all chains, where schedules are far from the bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipesched.problem.problem import Objective
from pipesched.results.gap import gap
from solver.block_orders.children import Preference
from solver.block_orders.schedules import schedule_of_moves
from solver.block_orders.search import best_order
from solver.block_orders.tables import covers, walks_of
from solver.engine.kernels import BLOCK_ORDER_KERNELS
from solver.engine.meanwhile import improving_meanwhile
from solver.engine.search import Search
from solver.local_search.equal_value import halted

# Waits are in mean forwards here. With how many nodes of a layer may have run the same passes.
_PREFERENCES = (
    (Preference(block_wait=1.0, wait=0.0, longest=3.0, devices=10.0, microbatches=1.0), 4),
    (Preference(block_wait=0.5, wait=0.0, longest=10.0, devices=10.0, microbatches=0.3), 4),
    (Preference(block_wait=1.0, wait=2.0, longest=10.0, devices=10.0, microbatches=1.0), 20),
)
_WIDTHS = (100, 300, 1_000, 3_000)


@dataclass(frozen=True)
class BlockOrders:
    """Each preference with more and more nodes of a layer, for a share of the time; local search goes on from each.

    Where schedules are further than `near` from the bound. Where work is counted, one with the fewest nodes.
    """

    share: float = 0.15
    near: float = 0.01
    name: str = "beam search with blocks"

    def applies(self, search: Search) -> bool:
        state, problem = search.incumbent.state, search.problem
        if state.value is None or gap(state.value, state.lower_bound) <= self.near:
            return False
        if search.chains is not None or search.very_long or problem.objective is not Objective.MAKESPAN:
            return False
        return covers(problem)

    def run(self, search: Search) -> None:
        clock = search.clock
        if clock.counts_work:
            self._offer(search, *_PREFERENCES[0], _WIDTHS[0], None)
            return
        if not search.compiled(BLOCK_ORDER_KERNELS, self.share):
            return
        end = clock.left() - clock.left(self.share)
        with improving_meanwhile(search):
            for width in _WIDTHS:
                for prefers, alike in _PREFERENCES:
                    left = clock.left() - end
                    if left <= 0 or search.done():
                        return
                    self._offer(search, prefers, alike, width, left)

    def _offer(self, search: Search, prefers: Preference, alike: int, width: int, seconds: float | None) -> None:
        problem = search.problem
        walks = walks_of(problem)
        forward = float(np.mean([stage.forward for stage in problem.stages]))
        ticks = prefers._replace(block_wait=prefers.block_wait * forward, wait=prefers.wait * forward)
        found = halted(lambda halt: best_order(walks, ticks, width, alike, halt), search.stop, seconds)
        if found is not None:
            search.start_from(schedule_of_moves(problem, found.moves))
