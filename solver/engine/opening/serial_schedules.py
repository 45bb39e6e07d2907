"""Opening for passes of several tasks: serial generation from ranks of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from pipesched.schedule.metrics import measure
from solver.engine.search import Search
from solver.tasks.rank_search import Ranks, Serial
from solver.tasks.task_ranks import task_ranks
from solver.tasks.ways_to_run import ways_to_run
from solver.tuning import APART, FEW_PASSES, KEPT, LATER, SHARE


@dataclass(frozen=True)
class SerialSchedules:
    """First schedules: micro-batch by micro-batch, and in the order of published ones, also where those do not fit.

    A few of them, the shortest first. Of so many passes to time and judge one takes seconds: none where one
    is known.
    """

    name: str = "serial generation of tasks"

    def applies(self, search: Search) -> bool:
        few = search.passes <= FEW_PASSES or search.incumbent.timeline is None
        return few and not search.plain_passes

    def run(self, search: Search) -> None:
        if not search.wait_for(search.kernels, SHARE):
            return
        jobs = jobs_of(search.problem)
        for running in ways_to_run(jobs):
            try:
                self._offer(search, Serial(jobs, *running))
            except ValueError:
                return

    def _offer(self, search: Search, serial: Serial) -> None:
        found = (serial.run(ranks) for ranks in self._ranks(search, serial))
        best = min((one for one in found if one is not None), key=lambda one: one[0], default=None)
        schedule = None if best is None else schedule_of_starts(serial.jobs, serial.starts(best[1]), "optimised")
        if schedule is not None:
            search.start_from(schedule)

    def _ranks(self, search: Search, serial: Serial) -> Iterator[Ranks]:
        yield from (serial.by_microbatch(apart, later) for apart in APART for later in LATER)
        # Published orders hold none of what may be chosen, or choose it in another way.
        known = () if search.problem.network.options else search.candidates
        timelines = [one.timeline for one in known if one.timeline is not None]
        for timeline in sorted(timelines, key=lambda one: measure(one).makespan)[:KEPT]:
            yield np.array(task_ranks(timeline, [serial.jobs.jobs[n].task for n in serial.running]))
