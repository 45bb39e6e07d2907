"""Part for passes of several tasks: schedules of whole passes, searched as such, become schedules of tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.errors import Deadlock
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.without_parameters import without_parameters
from solver.engine.kernels import KERNELS, Kernels
from solver.engine.run import found_in
from solver.engine.search import Engine, Search
from solver.engine.slices import Slice, Work
from solver.tasks.whole_passes import in_tasks, with_blocks, with_delays
from solver.tuning import MANY_PASSES, SHARE


@dataclass(frozen=True)
class TwoLevels:
    """Each problem of whole passes has a slice in turn. Of very many tasks it takes too long to time them."""

    engine: Engine
    name: str = "whole passes"
    parallel: bool = True
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        problem = search.problem
        plain = not (problem.overlaps or problem.network.options or problem.stage_arcs)
        several = not without_parameters(problem).network.one_task_each
        return several and plain and search.tasks <= MANY_PASSES

    def kernels(self, _: Search) -> Kernels:
        return KERNELS

    def work(self, search: Search) -> Work:
        jobs = jobs_of(search.problem)
        while True:
            slice_ = yield
            self._offer(search, jobs, with_delays(search.problem), slice_)
            slice_ = yield
            limits = slice_.limits(search.limits)
            limits = replace(limits, seconds=SHARE * limits.seconds, target=None)
            self._offer(search, jobs, with_blocks(search.problem, limits, search.stop), slice_)

    def _offer(self, search: Search, jobs: Jobs, whole: Problem, slice_: Slice) -> None:
        for timeline in found_in(search, whole, self.engine, slice_):
            try:
                schedule = in_tasks(jobs, timeline)
            except Deadlock:
                continue
            if schedule is not None:
                search.start_from(schedule)
