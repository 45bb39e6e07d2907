"""Part: beam search over the orders of all chains, with overlapped blocks."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from pipesched.problem.problem import Objective
from solver.backends.interruptible import run_within
from solver.beam.below import Below, what_follows
from solver.beam.children import Preference
from solver.beam.nodes import offsets
from solver.beam.schedules import schedule_of_moves
from solver.beam.search import Found, best_order
from solver.beam.tables import Numbers, covers, walks_of
from solver.engine.kernels import BEAM_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
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
        slice_ = yield
        if search.clock.counts_work:
            _offer(search, _Run(*_PREFERENCES[0], _WIDTHS[0]), slice_)
            return
        narrow, wide = _WIDTHS[:_NARROW], _WIDTHS[_NARROW:]
        slice_ = yield from _offered(search, [_Run(*one, width) for width in narrow for one in _PREFERENCES], slice_)
        below = None
        if search.problem.objective is Objective.MAKESPAN:
            below = run_within(slice_.left(), search.stop, partial(what_follows, search.problem, search.stop))
        runs = [_Run(*one, width) for width in wide for one in _PREFERENCES]
        if below is not None:
            runs = [_Run(one, alike, width, below) for width, alike in _WIDTHS_BELOW for one in _PREFERENCES_BELOW]
        yield from _offered(search, runs, slice_)


class _Run(NamedTuple):
    prefers: Preference
    alike: int
    width: int
    below: Below | None = None


def _offered(search: Search, runs: Sequence[_Run], slice_: Slice) -> Generator[None, Slice, Slice]:
    """What runs find; one that a slice ends begins anew in the next. Returns the slice in which the last one ended."""
    for run in runs:
        while slice_.over() or not _offer(search, run, slice_):
            slice_ = yield
    return slice_


def _offer(search: Search, run: _Run, slice_: Slice) -> bool:
    """Whether the run came to its end within the slice, with or without an order."""
    problem, value = search.problem, search.incumbent.state.value
    walks = walks_of(problem)
    forward = float(np.mean([stage.forward for stage in problem.stages]))
    prefers = run.prefers
    ticks = prefers._replace(block_wait=prefers.block_wait * forward, wait=prefers.wait * forward)
    width = min(run.width, max(1, _MOST_NUMBERS // offsets(walks)[-1]))
    below = run.below if run.below is None or value is None else run.below._replace(value=int(value))
    seconds = None if search.clock.counts_work else slice_.left()
    halts = list[Numbers]()

    def found_with(halt: Numbers) -> Found | None:
        halts.append(halt)
        return best_order(walks, ticks, width, run.alike, halt, below)

    found = halted(found_with, search.stop, seconds)
    if found is not None:
        search.start_from(schedule_of_moves(problem, found.moves))
    return found is not None or not halts[0][0]
