"""Part for problems whose activations may be offloaded or recomputed: plain problems in which all are held one way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.least_held import holding_least
from pipesched.problem.stage import Stage
from solver.engine.kernels import KERNELS, Kernels
from solver.engine.run import found_in
from solver.engine.search import Engine, Search
from solver.engine.slices import Work
from solver.tasks.dispatch import expanded
from solver.tasks.memory_decisions import rules, with_decisions


@dataclass(frozen=True)
class OneWayEach:
    """Each plain problem has a slice in turn; copies and recomputations are then put into its best orders.

    Copies take no time there, and a recomputation is the first part of its backward.
    """

    engine: Engine
    name: str = "plain problems of one way each"
    parallel: bool = True
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        plain = not search.problem.transfer_stream and not any(stage.tasks for stage in search.problem.stages)
        return bool(search.problem.network.options) and plain

    def kernels(self, _: Search) -> Kernels:
        return KERNELS

    def work(self, search: Search) -> Work:
        jobs = jobs_of(search.problem)
        while True:
            for problem in _plain_problems(search.problem):
                slice_ = yield
                for timeline in found_in(search, problem, self.engine, slice_):
                    for rule in rules(search.problem):
                        order = with_decisions(search.problem, timeline.schedule, rule)
                        for schedule in () if order is None else expanded(jobs, order):
                            search.start_from(schedule)


def _plain_problems(problem: Problem) -> Iterator[Problem]:
    """Every activation offloaded, if a stage can; then every one recomputed by the first way."""
    if any(stage.offload for stage in problem.stages):
        yield holding_least(problem)
    if any(stage.recompute for stage in problem.stages):
        yield holding_least(replace(problem, stages=tuple(map(_recomputing, problem.stages))))


def _recomputing(stage: Stage) -> Stage:
    if not stage.recompute:
        return stage
    ticks = stage.recompute[0].ticks
    return replace(stage, backward=stage.backward + ticks, fused=stage.fused + ticks)
