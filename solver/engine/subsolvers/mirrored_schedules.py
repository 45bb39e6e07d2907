"""Subsolver for two chains that are mirror images: search schedules of one chain on half of the devices."""

from __future__ import annotations

from dataclasses import dataclass, replace

from solver.construction.mirrored import folded, unfolded
from solver.engine.allocation import Allocation
from solver.engine.kernels import Kernels
from solver.engine.search import Engine, Search
from solver.engine.slices import Work


@dataclass(frozen=True)
class MirroredSchedules:
    """Run the engine on the problem of one chain; its schedules and their mirror images together are offered as starts.

    The half problem has half of the passes, and each change in it changes both chains. Its subsolvers share this
    subsolver's slices.
    """

    engine: Engine
    name: str = "mirrored schedules"
    parallel: bool = True
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        return search.chains is None and not search.very_long and folded(search.problem) is not None

    def kernels(self, search: Search) -> Kernels:
        return search.kernels

    def work(self, search: Search) -> Work:
        half, slice_ = folded(search.problem), (yield)
        assert half is not None
        limits = replace(search.limits, target=None)
        one = Search(half, limits, lambda _: None, search.stop, self.engine, search.done, within=search)
        one.open()
        search.incumbent.note_defects_of(one.incumbent)
        if one.incumbent.timeline is None:
            return
        allocation = Allocation(one, self.engine.subsolvers)
        try:
            while True:
                more = allocation.go_on(slice_.share(limits))
                search.incumbent.note_defects_of(one.incumbent)
                for timeline in (one.incumbent.timeline, *one.starts()):
                    if timeline is not None:
                        search.start_from(unfolded(search.problem, timeline.schedule))
                if not more:
                    return
                slice_ = yield
        finally:
            allocation.close()
