"""Phase for passes of several tasks: schedules of whole passes, searched as such, become schedules of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.errors import Deadlock
from pipesched.problem.problem import Problem
from solver.engine.search import Engine, Search
from solver.tasks.whole_passes import in_tasks, with_blocks, with_delays


@dataclass(frozen=True)
class TwoLevels:
    """Each problem of whole passes has a share of the time. CP-SAT does few tasks without; very many take too long."""

    engine: Engine
    share: float = 0.1
    pair_share: float = 0.02
    least_tasks: int = 200
    most_tasks: int = 20_000
    name: str = "whole passes"

    def applies(self, search: Search) -> bool:
        problem = search.problem
        network = problem.network
        tasks = sum(len(own) * len(network.numbers[of]) for of, own in network.tasks.items())
        plain = not (problem.overlaps or network.options or problem.stage_arcs)
        return plain and self.least_tasks <= tasks <= self.most_tasks

    def run(self, search: Search) -> None:
        jobs = jobs_of(search.problem)
        for problem in self._problems(search):
            limits = replace(search.limits, seconds=search.clock.left(self.share), target=None)
            engine = replace(self.engine, raise_bounds=False)
            whole = Search(problem, limits, lambda _: None, search.stop, engine, search.done)
            whole.run()
            timelines = [whole.incumbent.timeline, *whole.starts()]
            for timeline in timelines:
                if timeline is None or search.done():
                    return
                try:
                    schedule = in_tasks(jobs, timeline)
                except Deadlock:
                    continue
                if schedule is not None:
                    search.start_from(schedule)

    def _problems(self, search: Search) -> Iterator[Problem]:
        yield with_delays(search.problem)
        seconds = search.clock.left(self.pair_share)
        yield with_blocks(search.problem, replace(search.limits, seconds=seconds, target=None), search.stop)
