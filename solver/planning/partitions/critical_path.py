"""Critical path of a timeline as a Benders cut: the number of passes of each stage on the longest path of waits.

In an order that does not depend on the stage costs, the same path exists for every partition. Its length, linear in the
stage costs, is therefore a lower bound on the makespan of every partition.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.passes import F, Pass, PassKind
from pipesched.schedule.timeline import Timeline


@dataclass(frozen=True)
class CriticalPath:
    """Passes and transfers on a critical path.

    `passes` has pairs ((kind, stage), number of passes on the path); `lags` is the total of the transfers in ticks.
    """

    passes: tuple[tuple[tuple[PassKind, int], int], ...]
    lags: int


def critical_path(timeline: Timeline, plan: PlanProblem) -> CriticalPath:
    """Return the critical path to the pass that ends last; ties are broken by the order of passes.

    The transfer of a gradient counts with the least time it has in any partition of the plan problem.
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
