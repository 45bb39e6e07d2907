"""When each task starts in a timeline, or about would: what serial generation runs first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pipesched.problem.passes import BW, OF_PARAMETERS, Task, W
from pipesched.problem.problem import Problem
from pipesched.schedule.timeline import Timeline


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
