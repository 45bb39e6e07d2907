"""Part: beam search over the orders of all chains, with overlapped blocks."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np

from pipesched.problem.problem import Objective
from solver.backends.interruptible import run_within
from solver.beam.below import Below, what_follows
from solver.beam.nodes import offsets
from solver.beam.openings import openings
from solver.beam.ranks import Preference
from solver.beam.schedules import schedule_of_moves
from solver.beam.search import Found, best_order
from solver.beam.tables import covers, walks_of
from solver.engine.kernels import BEAM_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.tuning import BEAM_ALIKE, BEAM_MEMORY, BEAM_WIDTH, FEW, LITTLE, MOST_NUMBERS


@dataclass(frozen=True)
class BeamSchedules:
    """Several ways with more and more nodes of a layer, fewer each time; local search goes on from each.

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
        problem, slice_ = search.problem, (yield)
        below, width = None, BEAM_WIDTH
        forward = float(np.mean([stage.forward for stage in problem.stages]))
        runs = [
            (walks_of(problem, opens), Preference(forward, longest, under_way, BEAM_MEMORY))
            for longest, under_way in ((0.0, 0.0), (1.0, 0.0), (0.0, LITTLE))
            for opens in openings(problem)
        ]
        while width <= MOST_NUMBERS // (FEW * offsets(runs[0][0])[-1]):
            values = list[float]()
            for walks, prefers in runs:
                found, slice_ = yield from _found(search, best_order(walks, prefers, width, BEAM_ALIKE, below), slice_)
                if found is not None:
                    search.start_from(schedule_of_moves(problem, walks, found.moves))
                values.append(inf if found is None else found.value)
                if search.clock.counts_work:
                    return
                below = None if below is None else _below_best(search, below)
            # As much time for each width: the best go on (successive halving, Jamieson and Talwalkar, 2016).
            best = sorted(range(len(runs)), key=values.__getitem__)[: max(1, len(runs) // FEW)]
            runs = [runs[one] for one in best]
            if width == BEAM_WIDTH and problem.objective is Objective.MAKESPAN:
                below = run_within(slice_.left(), search.stop, partial(what_follows, problem, search.stop))
                below = None if below is None else _below_best(search, below)
            width *= FEW


def _below_best(search: Search, below: Below) -> Below:
    """Only what may end below the best value known."""
    value = search.incumbent.state.value
    return below if value is None else below._replace(value=int(value))


def _found(
    search: Search, run: Generator[None, None, Found | None], slice_: Slice
) -> Generator[None, Slice, tuple[Found | None, Slice]]:
    """What a run finds, in as many slices as it needs, and the last of these."""
    while True:
        try:
            next(run)
        except StopIteration as ended:
            return ended.value, slice_
        while slice_.over() or search.stop.is_set():
            slice_ = yield
