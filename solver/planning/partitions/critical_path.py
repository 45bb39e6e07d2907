"""The critical path of a timeline: how often each stage's passes lie on the longest chain of waits that ends last.

For an order that is the same whatever the stages cost, the chain is there for all costs: its length is a lower bound
on the makespan of every partition, linear in the costs of the stages (a Benders cut).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.passes import F, Pass, PassKind
from pipesched.schedule.timeline import Timeline


@dataclass(frozen=True)
class CriticalPath:
    """`passes[kind, stage]` passes lie on it, and transfers of `lags` ticks in all."""

    passes: tuple[tuple[tuple[PassKind, int], int], ...]
    lags: int


def critical_path(timeline: Timeline, plan: PlanProblem) -> CriticalPath:
    """Of the pass that ends last; ties are broken by the order of passes.

    Gradients count by the least that they take of all partitions of the plan.
    """
    problem, schedule = timeline.problem, timeline.schedule
    present = set(schedule.passes())
    before: dict[Pass, Pass] = {}
    for d in range(problem.devices):
        rows: dict[str, list[Pass]] = {}
        for p in schedule.passes_on(d):
            rows.setdefault(problem.tasks_of(*p[:2])[0].stream, []).append(p)
        for row in rows.values():
            before |= dict(zip(row[1:], row, strict=False))
    here = max(present, key=lambda p: (timeline.end(p), p))
    counts: Counter[tuple[PassKind, int]] = Counter()
    lags, place = 0, {stage: at for chain in problem.placement.chains for at, stage in enumerate(chain)}
    while True:
        counts[here.kind, here.stage] += 1
        waits = [*problem.network.predecessors(here, present)]
        if here in before:
            waits.append((before[here], 0))
        binding = [(p, lag) for p, lag in waits if timeline.end(p) + lag == timeline.start(here)]
        if timeline.start(here) == 0 or not binding:
            return CriticalPath(tuple(sorted(counts.items())), lags)
        after, (here, lag) = here, min(binding, key=lambda wait: (wait[1], wait[0]))
        lags += lag if after.kind is F else plan.least_gradient_lag(place[after.stage], lag)
