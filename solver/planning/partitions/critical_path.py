"""The critical path of a timeline: how often each stage's passes lie on the longest chain of waits that ends last.

For an order that is the same whatever the stages cost, the chain is there for all costs: its length is a lower bound
on the makespan of every partition, linear in the costs of the stages (a Benders cut).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pipesched.problem.passes import F, Pass, PassKind
from pipesched.schedule.timeline import Timeline


@dataclass(frozen=True)
class CriticalPath:
    """`passes[kind, stage]` passes lie on it, and transfers of `lags` ticks in all."""

    passes: tuple[tuple[tuple[PassKind, int], int], ...]
    lags: int


def critical_path(timeline: Timeline, before_training: int = 0, device: int | None = None) -> CriticalPath:
    """Of the pass that ends last, on this device or anywhere; ties are broken by the order of passes.

    With so many layers `before_training` the first stages of some partitions get no gradient: none is counted there.
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
    last = present if device is None else set(schedule.passes_on(device))
    here = max(last, key=lambda p: (timeline.end(p), p))
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
        lags += 0 if after.kind is not F and place[after.stage] < before_training else lag
