"""Part: beam search over the orders of all chains, with overlapped blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from pipesched.problem.problem import Objective
from solver.backends.interruptible import run_within
from solver.beam.below import Below, what_follows
from solver.beam.nodes import offsets
from solver.beam.ranks import Preference
from solver.beam.schedules import schedule_of_moves
from solver.beam.search import Found, best_order
from solver.beam.tables import Numbers, covers, walks_of
from solver.engine.kernels import BEAM_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.local_search.equal_value import halted
from solver.tuning import BEAM_PREFERENCES, BEAM_WIDTH, FEW, LONGER, MOST_NUMBERS


@dataclass(frozen=True)
class BeamSchedules:
    """Each preference with more and more nodes of a layer; local search goes on from each.

    Of the makespan of one chain with few states, orders that cannot end below the best value are left out after the
    narrowest. Where work is counted, one with the fewest nodes.
    """

    name: str = "beam search"
    parallel: bool = False
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        return search.chains is None and not search.very_long and search.plain_passes and covers(search.problem)

    def kernels(self, _: Search) -> Kernels:
        return BEAM_KERNELS

    def work(self, search: Search) -> Work:
        below, width, slice_ = None, BEAM_WIDTH, (yield)
        forward = float(np.mean([stage.forward for stage in search.problem.stages]))
        most = MOST_NUMBERS // (FEW * offsets(walks_of(search.problem))[-1])
        while width <= most:
            for wait, *weights, alike in BEAM_PREFERENCES:
                prefers = Preference(forward, wait * forward, *weights)
                while slice_.over() or not _offer(search, prefers, alike, width, slice_, below):
                    slice_ = yield
                if search.clock.counts_work:
                    return
            if width == BEAM_WIDTH and search.problem.objective is Objective.MAKESPAN:
                below = run_within(slice_.left(), search.stop, partial(what_follows, search.problem, search.stop))
            width *= int(LONGER)


def _offer(search: Search, prefers: Preference, alike: int, width: int, slice_: Slice, below: Below | None) -> bool:
    """Whether the run came to its end within the slice, with or without an order."""
    problem, value = search.problem, search.incumbent.state.value
    walks = walks_of(problem)
    below = below if below is None or value is None else below._replace(value=int(value))
    seconds = None if search.clock.counts_work else slice_.left()
    halts = list[Numbers]()

    def found_with(halt: Numbers) -> Found | None:
        halts.append(halt)
        return best_order(walks, prefers, width, alike, halt, below)

    found = halted(found_with, search.stop, seconds)
    if found is not None:
        search.start_from(schedule_of_moves(problem, found.moves))
    return found is not None or not halts[0][0]
