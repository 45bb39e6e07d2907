"""Part for problems with more than plain passes: bounds of the plain problem that is left without the rest.

Diagrams and the exact model prove much of plain passes that they cannot say where there is more to order; what they
prove without it holds with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from formulations.jobs.jobs_of_problem import jobs_of
from solver.bounds.saving.certificates import plain_relaxation, with_parameters
from solver.engine.claims import claim
from solver.engine.kernels import KERNELS, Kernels
from solver.engine.run import searched
from solver.engine.search import Engine, Search
from solver.engine.slices import Work
from solver.tasks.dispatch import expanded


@dataclass(frozen=True)
class PlainRelaxation:
    """Its bounds are claimed; where nothing has to be chosen besides, its orders are schedules to go on from."""

    engine: Engine
    name: str = "plain relaxation"
    parallel: bool = True
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        return search.engine.raise_bounds and not search.plain_passes and plain_relaxation(search.problem) is not None

    def kernels(self, _: Search) -> Kernels:
        return KERNELS

    def work(self, search: Search) -> Work:
        problem, relaxed = search.problem, plain_relaxation(search.problem)
        assert relaxed is not None
        while True:
            slice_ = yield
            other = searched(search, relaxed, self.engine, slice_)
            found = with_parameters(problem, other.incumbent.state.certificate)
            search.found_bound(found.value_ticks)
            claim(search, [found])
            for timeline in () if problem.network.options else (other.incumbent.timeline, *other.starts()):
                for schedule in () if timeline is None else expanded(jobs_of(problem), timeline.schedule):
                    search.start_from(schedule)
            if other.done() and not search.done():
                return
