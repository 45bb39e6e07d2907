"""Subsolver: beam search over the orders of passes of all chains, with overlapped blocks."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np

from pipesched.deadline import Deadline, within
from pipesched.problem.passes import F
from solver.beam.completion import CompletionBounds, completion_bounds
from solver.beam.nodes import offsets
from solver.beam.openings import openings
from solver.beam.ranks import Preference
from solver.beam.schedules import schedule_of_moves
from solver.beam.search import BeamOrder, best_order
from solver.beam.tables import covers, tables_of
from solver.diagram.compile import Progress
from solver.engine.kernels import BEAM_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class BeamSchedules:
    """Beam searches of growing width; each next width continues only the best preferences for ranking nodes.

    Local search may start from each result. For the makespan of one chain with few states, orders that cannot end
    before the incumbent are pruned after the narrowest run. Under a deterministic limit there is one run with the
    smallest width. A layer has `width` nodes at first, `width_growth` times as many in the next search, of `fewer_runs`
    times fewer runs, while `most_numbers` numbers fit into memory; `alike` nodes are kept of those that ran the same
    passes. `memory_factor` multiplies the stay of an activation in memory without waits, `in_flight_weight` counts
    forwards for each micro-batch in flight, in the third preference.
    """

    width: int = tuned(100, "nodes of a layer at first", 1, 100_000)
    width_growth: int = tuned(3, "times as many nodes the next time", 2, 10)
    fewer_runs: int = tuned(3, "times fewer runs the next time: as much time for each width", 1, 10)
    memory_factor: float = tuned(
        1.5, "times the stay of an activation in memory without waits, as it is expected", 1, 4,
        "without it single preferences are 5 to 40 % worse; of twelve tried with 60 nodes on 17 problems of seeds 35 "
        "and 36 the three of this subsolver together are .2 % above the best of all",
    )  # fmt: skip
    in_flight_weight: float = tuned(0.1, "forwards, for each micro-batch in flight, in the third preference", 0, 10)
    alike: int = tuned(2, "nodes kept of those that ran the same passes", 1, 100)
    most_numbers: int = tuned(16_666_666, "numbers in memory at once", 10**6, 10**9)
    name: str = "beam search"
    parallel: bool = False
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        return search.chains is None and not search.very_long and covers(search.problem)

    def kernels(self, _: Search) -> Kernels:
        return BEAM_KERNELS

    def work(self, search: Search) -> Work:
        problem, slice_ = search.problem, (yield)
        bounds, width = None, self.width
        view = problem.pipeline
        forward = float(np.mean([view.ticks[F, stage] for stage in view.stages]))
        runs = [
            (tables_of(problem, opens), Preference(forward, longest, in_flight, self.memory_factor))
            for longest, in_flight in ((0.0, 0.0), (1.0, 0.0), (0.0, self.in_flight_weight))
            for opens in openings(problem)
        ]
        while width <= self.most_numbers // offsets(runs[0][0])[-1]:
            values = list[float]()
            for tables, prefers in runs:
                found, slice_ = yield from _found(
                    search, best_order(tables, prefers, width, self.alike, bounds), slice_
                )
                if found is not None:
                    search.start_from(schedule_of_moves(problem, tables, found.moves))
                values.append(inf if found is None else found.value)
                if search.clock.counts_work:
                    return
                bounds = None if bounds is None else _up_to_incumbent(search, bounds)
            # As much time for each width: the best go on (successive halving, Jamieson and Talwalkar, 2016).
            best = sorted(range(len(runs)), key=values.__getitem__)[: max(1, len(runs) // self.fewer_runs)]
            runs = [runs[one] for one in best]
            if width == self.width and not problem.objective.by_device:
                bounds = within(
                    Deadline.after(slice_.left(), search.stop), partial(completion_bounds, problem, search.stop)
                )
                bounds = None if bounds is None else _up_to_incumbent(search, bounds)
            width *= self.width_growth


def _up_to_incumbent(search: Search, bounds: CompletionBounds) -> CompletionBounds:
    """Return completion bounds that prune orders which cannot end before the incumbent; unchanged without one."""
    value = search.incumbent.state.value
    return bounds if value is None else bounds._replace(value=int(value))


def _found(
    search: Search, run: Generator[Progress, None, BeamOrder | None], slice_: Slice
) -> Generator[None, Slice, tuple[BeamOrder | None, Slice]]:
    """Advance a beam search over as many slices as it needs; return its result (None: no order) and the last slice."""
    while True:
        try:
            next(run)
        except StopIteration as ended:
            return ended.value, slice_
        while slice_.over() or search.stop.is_set():
            slice_ = yield
