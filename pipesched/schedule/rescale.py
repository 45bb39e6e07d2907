"""Timelines and metrics in finer ticks, and values converted between the ticks of two problems."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.attainable_spans import Value
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import finer, in_ticks_of
from pipesched.schedule.metrics import Metrics, measure
from pipesched.schedule.pass_table import whole
from pipesched.schedule.start_table import StartTable
from pipesched.schedule.timeline import Timeline


def finer_timeline(timeline: Timeline, parts: int) -> Timeline:
    """Return a timeline in ticks that are `parts` times finer; its times in the file's unit stay the same."""
    if parts == 1:
        return timeline
    starts = timeline.starts
    if isinstance(starts, StartTable):
        ticks = whole([tick * parts for tick in starts.ticks.tolist()])
        return Timeline(
            finer(timeline.problem, parts),
            timeline.schedule,
            StartTable(starts.columns, starts.first, starts.parts, ticks),
        )
    times = {task: start * parts for task, start in starts.items()}
    return Timeline(finer(timeline.problem, parts), timeline.schedule, times)


def finer_metrics(metrics: Metrics, parts: int) -> Metrics:
    """Return metrics in ticks that are `parts` times finer; times in the file's unit stay the same."""
    return replace(
        metrics,
        problem=finer(metrics.problem, parts),
        makespan_ticks=metrics.makespan_ticks * parts,
        span_ticks=metrics.span_ticks * parts,
        work_ticks=tuple(work * parts for work in metrics.work_ticks),
        period_ticks=None if metrics.period_ticks is None else metrics.period_ticks * parts,
    )


def value_of(problem: Problem, timeline: Timeline) -> Value:
    """Return the objective's value of a timeline in ticks of `problem`; the timeline may be in finer ticks.

    The objective is that of `problem`. `ValueError` if it is the period, which no timeline has.
    """
    return in_ticks_of(problem, measure(timeline).value_ticks(problem.objective), timeline.problem)
