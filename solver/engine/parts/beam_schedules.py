"""Part: beam search over orders and modes of a line of devices, one stage each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from solver.construction.beam_search import BeamSearch
from solver.construction.beam_tables import covers
from solver.engine.kernels import BEAM_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.local_search.units.operation_units import modes_matter


@dataclass(frozen=True)
class BeamSchedules:
    """Where full backwards gain, and annealing leaves modes much as it finds them.

    Narrow beams with all settings, then wider ones with the best; begun anew in each slice. Where work is counted, so
    many rounds are made.
    """

    counted_rounds: int = 1
    name: str = "beam search"
    parallel: bool = True
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        if search.chains is not None or search.very_long or not search.plain_passes:
            return False
        return covers(search.problem) and modes_matter(search.problem)

    def kernels(self, _: Search) -> Kernels:
        return BEAM_KERNELS

    def work(self, search: Search) -> Work:
        slice_ = yield
        if search.clock.counts_work:
            BeamSearch(search.problem, 1).run(search.done, search.start_from, self.counted_rounds)
            return
        while True:
            over = partial(_over, search, slice_)
            BeamSearch(search.problem, search.workers).run(over, search.start_from)
            if not slice_.over():
                return
            slice_ = yield


def _over(search: Search, slice_: Slice) -> bool:
    return search.done() or slice_.over()
