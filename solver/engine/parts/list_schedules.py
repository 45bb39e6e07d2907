"""Part: list schedules, by many priority rules."""

from __future__ import annotations

from dataclasses import dataclass

from solver.construction.list_scheduling import list_schedules
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Work


@dataclass(frozen=True)
class ListSchedules:
    """One rule after the other; local search may go on from each."""

    name: str = "list schedules"
    parallel: bool = False
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        return search.plain_passes and not (search.has_starts and search.very_long)

    def kernels(self, search: Search) -> Kernels:
        return search.kernels

    def work(self, search: Search) -> Work:
        slice_ = yield
        for schedule in list_schedules(search.problem, True):
            search.start_from(schedule)
            if slice_.over():
                slice_ = yield
