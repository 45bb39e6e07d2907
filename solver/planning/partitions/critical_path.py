"""Critical path of a timeline as a Benders cut: the number of passes of each stage on the longest path of waits.

In an order that does not depend on the stage costs, the same path exists for every partition. Its length, linear in the
stage costs, is therefore a lower bound on the makespan of every partition.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.network.task_network import PassType
from pipesched.problem.passes import F, Pass, PassKind, Slot
from pipesched.problem.quantities import StageId, Ticks
from pipesched.schedule.timeline import Timeline


@dataclass(frozen=True)
class CriticalPath:
    """Number of times that passes, blocks and transfers lie on a critical path.

    `passes` has pairs ((kind, stage), number of such passes on the path). `blocks` has pairs ((stage of the forward,
    stage of the backward), number) for two passes that run as one block. `lags` is the sum of the transfers on the
    path, in ticks.
    """

    passes: tuple[tuple[PassType, int], ...]
    lags: Ticks
    blocks: tuple[tuple[tuple[StageId, StageId], int], ...] = ()


def critical_path(timeline: Timeline, plan: PlanProblem) -> CriticalPath:
    """Return the critical path of a timeline, from a pass that waits for none to the pass that ends last.

    Traced back from the end: of passes that end last it is the greatest by kind, stage and micro-batch, and of the
    passes that a pass waits for, the one with the least transfer. The transfer of a gradient counts with the least time
    it has in any partition of the plan problem.
    """
    problem, schedule = timeline.problem, timeline.schedule
    present = set(schedule.passes())
    before: dict[Pass, Pass] = {}
    paired: dict[Pass, Slot] = {}
    for d in range(problem.devices):
        rows: dict[str, list[Pass]] = {}
        for p in schedule.passes_on(d):
            rows.setdefault(problem.tasks_of(*p[:2])[0].stream, []).append(p)
        paired |= {p: slot for slot in schedule.orders[d] if timeline.in_block(slot[0]) for p in slot}
        for row in rows.values():
            before |= dict(zip(row[1:], row, strict=False))
    here = max(present, key=lambda p: (timeline.end(p), p))
    counts: Counter[tuple[PassKind, int]] = Counter()
    blocks: Counter[tuple[int, int]] = Counter()
    lags, place = 0, {stage: at for chain in problem.placement.chains for at, stage in enumerate(chain)}
    while True:
        slot = paired.get(here, (here,))
        if len(slot) == 2:
            blocks[slot[0].stage, slot[1].stage] += 1
        else:
            counts[here.kind, here.stage] += 1
        waits = [(p, lag, own) for own in slot for p, lag in problem.network.predecessors(own, present)]
        waits += [(before[own], 0, own) for own in slot if own in before and before[own] not in slot]
        binding = [(lag, p, own) for p, lag, own in waits if timeline.end(p) + lag == timeline.start(here)]
        if timeline.start(here) == 0 or not binding:
            return CriticalPath(tuple(sorted(counts.items())), lags, tuple(sorted(blocks.items())))
        lag, here, after = min(binding)
        lags += lag if after.kind is F else plan.least_gradient_lag(place[after.stage], lag)
