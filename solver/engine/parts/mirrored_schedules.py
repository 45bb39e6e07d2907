"""Part for two chains that are mirror images: schedules in which both do the same, searched on half of the devices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pipesched.schedule.rescale import value_of
from pipesched.schedule.timeline import Timeline
from solver.construction.mirrored import folded, unfolded
from solver.engine.kernels import Kernels
from solver.engine.run import found_in
from solver.engine.search import Engine, Search
from solver.engine.slices import Work


@dataclass(frozen=True)
class MirroredSchedules:
    """What `engine` finds for one chain in a slice; the next one starts from that, and all else goes on from there.

    That problem has half of the passes, and a change in it is one of both chains at once.
    """

    engine: Engine
    name: str = "mirrored schedules"
    parallel: bool = True
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        return search.chains is None and not search.very_long and folded(search.problem) is not None

    def kernels(self, search: Search) -> Kernels:
        return search.kernels

    def work(self, search: Search) -> Work:
        half = folded(search.problem)
        assert half is not None
        known: Timeline | None = None
        while True:
            slice_ = yield
            for timeline in found_in(search, half, self.engine, slice_, known):
                known = min(timeline, known or timeline, key=partial(value_of, half))
                search.start_from(unfolded(search.problem, timeline.schedule))
