"""Phase: beam search over orders and modes of a line of devices, one stage each, far from the bound."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pipesched.results.gap import gap
from solver.construction.beam_search import BeamSearch
from solver.construction.beam_tables import covers
from solver.engine.kernels import BEAM_KERNELS
from solver.engine.search import Search
from solver.local_search.units.operation_units import modes_matter


@dataclass(frozen=True)
class BeamSchedules:
    """For a share of the time, where schedules are further than `near` from the bound. Local search goes on from them.

    Where full backwards gain, and annealing leaves modes much as it finds them. Where work is counted, so many rounds
    are made.
    """

    share: float = 0.1
    near: float = 0.01
    counted_rounds: int = 1
    name: str = "beam search"

    def applies(self, search: Search) -> bool:
        state = search.incumbent.state
        if state.value is None or gap(state.value, state.lower_bound) <= self.near:
            return False
        if search.chains is not None or search.very_long or not covers(search.problem):
            return False
        return modes_matter(search.problem)

    def run(self, search: Search) -> None:
        clock, workers = search.clock, search.limits.workers or os.cpu_count() or 1
        left = clock.left() - clock.left(self.share)

        def over() -> bool:
            return search.done() or (not clock.counts_work and clock.left() <= left)

        if not clock.counts_work:
            BEAM_KERNELS.begin()
            if not BEAM_KERNELS.wait(over):
                return
        rounds = self.counted_rounds if clock.counts_work else None
        BeamSearch(search.problem, workers).run(over, search.start_from, rounds)
