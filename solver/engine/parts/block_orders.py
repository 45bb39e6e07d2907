"""Part: beam search over the orders and overlapped blocks of all chains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from pipesched.problem.problem import Objective
from solver.backends.interruptible import run_within
from solver.block_orders.below import Below, what_follows
from solver.block_orders.children import Preference
from solver.block_orders.nodes import offsets
from solver.block_orders.schedules import schedule_of_moves
from solver.block_orders.search import best_order
from solver.block_orders.tables import covers, walks_of
from solver.engine.kernels import BLOCK_ORDER_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Work
from solver.local_search.equal_value import halted

# Waits are in mean forwards here. With how many nodes of a layer may have run the same passes.
_PREFERENCES = (
    (Preference(block_wait=1.0, wait=0.0, longest=3.0, devices=10.0, microbatches=1.0), 4),
    (Preference(block_wait=0.5, wait=0.0, longest=10.0, devices=10.0, microbatches=0.3), 4),
    (Preference(block_wait=1.0, wait=2.0, longest=10.0, devices=10.0, microbatches=1.0), 20),
)
_WIDTHS = (100, 300, 1_000, 3_000)
# So many of these widths come before what follows is looked for.
_NARROW = 1
# Where it is known what must follow an order: waits and weights, and nodes of a layer with those of the same passes.
_PREFERENCES_BELOW = (
    Preference(block_wait=1.0, wait=0.5, longest=1.0, devices=10.0, microbatches=0.5),
    Preference(block_wait=0.3, wait=0.0, longest=1.0, devices=10.0, microbatches=0.5),
    Preference(block_wait=1.0, wait=2.0, longest=1.0, devices=10.0, microbatches=0.5),
)
_WIDTHS_BELOW = ((300, 2), (1_000, 2), (3_000, 4), (10_000, 4), (10_000, 16), (30_000, 8))
# Numbers of all nodes of a layer, eight bytes each; its children are some times as many.
_MOST_NUMBERS = 8_000_000


@dataclass(frozen=True)
class BlockOrders:
    """Each preference with more and more nodes of a layer; local search goes on from each.

    Of one chain with few states, orders that cannot end below the best value are left out after the narrowest. Where
    work is counted, one with the fewest nodes.
    """

    name: str = "beam search with blocks"
    parallel: bool = False
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        problem = search.problem
        if search.chains is not None or search.very_long or problem.objective is not Objective.MAKESPAN:
            return False
        return search.plain_passes and covers(problem)

    def kernels(self, _: Search) -> Kernels:
        return BLOCK_ORDER_KERNELS

    def work(self, search: Search) -> Work:
        slice_, below = (yield), None
        if search.clock.counts_work:
            _offer(search, *_PREFERENCES[0], _WIDTHS[0], None)
            return
        for number, width in enumerate(_WIDTHS):
            if number == _NARROW:
                below = run_within(slice_.left(), search.stop, partial(what_follows, search.problem, search.stop))
                if below is not None:
                    break
            for prefers, alike in _PREFERENCES:
                if slice_.over():
                    slice_ = yield
                _offer(search, prefers, alike, width, slice_.left())
        for width, alike in _WIDTHS_BELOW if below is not None else ():
            for prefers in _PREFERENCES_BELOW:
                if slice_.over():
                    slice_ = yield
                value = search.incumbent.state.value
                known = below if below is None or value is None else below._replace(value=int(value))
                _offer(search, prefers, alike, width, slice_.left(), known)


def _offer(
    search: Search,
    prefers: Preference,
    alike: int,
    width: int,
    seconds: float | None,
    below: Below | None = None,
) -> None:
    problem = search.problem
    walks = walks_of(problem)
    forward = float(np.mean([stage.forward for stage in problem.stages]))
    ticks = prefers._replace(block_wait=prefers.block_wait * forward, wait=prefers.wait * forward)
    width = min(width, max(1, _MOST_NUMBERS // offsets(walks)[-1]))
    found = halted(lambda halt: best_order(walks, ticks, width, alike, halt, below), search.stop, seconds)
    if found is not None:
        search.start_from(schedule_of_moves(problem, found.moves))
