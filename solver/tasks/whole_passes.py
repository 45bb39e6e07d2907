"""Passes made of tasks as whole passes: smaller problems whose schedules say in which order the tasks should run.

Either communication is a delay: a pass occupies its device for what it computes alone, and what it communicates is
added to its transfers. Or a forward and a backward of a device may run as one block, as long as their best
interleaving takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Event

from formulations.jobs.gathers import grouped_as
from formulations.jobs.jobs import Jobs
from formulations.jobs.schedule_of_starts import schedule_of_starts
from pipesched.problem.passes import BW, OF_PARAMETERS, B, F, PassKind, Task, W
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.without_parameters import without_parameters
from pipesched.problem.stage import Stage
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.limits import Limits
from solver.tasks.dispatch import dispatched, in_passes_of, memory_waits
from solver.tasks.job_graph import graph_of, running_of
from solver.tasks.pair import best_pair


def with_delays(problem: Problem) -> Problem:
    """Communication as a delay between devices, the same there and back: half of what both passes communicate."""
    problem, stages = without_parameters(problem, max), []
    for s, stage in enumerate(problem.stages):
        hidden = sum(stage.ticks(kind) - stage.compute_ticks(kind) for kind in (F, _sends_gradient(problem)))
        ticks = {kind: stage.compute_ticks(kind) for kind in stage.kinds}
        stages.append(_plain(stage, ticks, problem.stages[s].transfer + hidden // 2, None))
    return replace(problem, stages=tuple(stages), transfer_stream=None, stream_names=(), name=f"{problem.name}: delays")


def with_blocks(problem: Problem, limits: Limits, stop: Event) -> Problem:
    """A forward with a backward of its device as a block: of all stages there, the longest of the best pairs."""
    lengths: dict[tuple[Stage, Stage], int] = {}
    problem, stages = without_parameters(problem, max), []
    where = problem.placement
    for s, stage in enumerate(problem.stages):
        for mate in where.on_device_of(s):
            both = stage, problem.stages[mate]
            if both not in lengths:
                lengths[both] = int(best_pair(problem, s, mate, limits, stop).value / problem.tick)
        mates = [lengths[stage, problem.stages[mate]] for mate in where.on_device_of(s)]
        stages.append(_plain(stage, {kind: stage.ticks(kind) for kind in stage.kinds}, stage.transfer, max(mates)))
    return replace(problem, stages=tuple(stages), transfer_stream=None, stream_names=(), name=f"{problem.name}: blocks")


def _sends_gradient(problem: Problem) -> PassKind:
    return B if problem.splittable else BW


def _plain(stage: Stage, ticks: Mapping[PassKind, int], transfer: int, block: int | None) -> Stage:
    """A stage whose passes are one task each."""
    backward = ticks[B] if B in ticks else ticks[BW]
    return replace(
        stage,
        forward=ticks[F],
        backward=backward,
        weight=ticks.get(W),
        fused=ticks[BW],
        transfer=transfer,
        overlapped=block,
        tasks=(),
    )


@dataclass(frozen=True)
class _Ranks:
    """When each task would start, if its pass started when the whole pass does."""

    timeline: Timeline
    problem: Problem

    @cached_property
    def _last_end(self) -> int:
        return int(self.timeline.times[1].max())

    def of(self, task: Task) -> float:
        p, schedule = task.of, self.timeline.schedule
        if p.kind in OF_PARAMETERS and p not in schedule.pass_set:
            return float(self._last_end)  # whole passes are those of micro-batches alone
        own = self.problem.tasks_of(p.kind, p.stage)
        chain = 0 if p.kind is W else sum(each.ticks for each in own[: task.part])
        length = max(1, sum(each.ticks for each in own))
        if p in schedule.pass_set:
            begin, end = self.timeline.start(p), self.timeline.end(p)
            return begin + (end - begin) * chain / length
        whole = p._replace(kind=BW)
        begin, end = self.timeline.start(whole), self.timeline.end(whole)
        return end if p.kind is W else begin + (end - begin) * chain / length


def task_ranks(timeline: Timeline, tasks: Sequence[Task]) -> list[float]:
    """When each task starts in a timeline; one of a pass that is split there into others, about when it would."""
    ranks, starts = _Ranks(timeline, timeline.problem), timeline.starts
    return [float(starts[task]) if task in starts else ranks.of(task) for task in tasks]


def in_tasks(jobs: Jobs, timeline: Timeline) -> Schedule | None:
    """A schedule of tasks from one of whole passes: whenever a stream is free, what starts first there by that."""
    schedule = in_passes_of(jobs, timeline.schedule)
    jobs = grouped_as(jobs, schedule)
    running = running_of(jobs, schedule)
    ranks = _Ranks(timeline, jobs.problem)
    starts = dispatched(
        graph_of(jobs, running, memory_waits(jobs, schedule)), {n: ranks.of(jobs.jobs[n].task) for n in running}
    )
    return schedule_of_starts(jobs, starts, "optimised")
