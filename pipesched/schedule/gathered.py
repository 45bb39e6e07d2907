"""The gathering of parameters that each pass uses, read from a device's order."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipesched.problem.passes import BW, RECOMPUTATIONS, RESHARD, UNSHARD, B, F, Pass, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId
from pipesched.schedule.schedule import Schedule

_USERS = frozenset((F, B, W, BW, *RECOMPUTATIONS))


@dataclass
class Gathered:
    """A gathering of a stage's parameters (`gather`), the passes that use it, and the pass that drops them (`release`).

    `release` is None if they are never dropped. Where a window limits how many stages of a device are gathered at once,
    `makes_room` is the last drop before this gathering in the device's order, after which it may begin; else None.
    """

    gather: Pass
    users: list[Pass] = field(default_factory=list)
    release: Pass | None = None
    makes_room: Pass | None = None


def uses_parameters(problem: Problem, kind: PassKind, stage: StageId) -> bool:
    """Return True if passes of this kind compute with the parameters of their stage.

    Backwards of frozen stages that no gradient reaches compute nothing.
    """
    return kind is F if problem.stages[stage].forward_only else kind in _USERS


def gathered(problem: Problem, schedule: Schedule) -> list[Gathered]:
    """Return every gathering of a schedule, device by device in order.

    Its users are the passes that compute with its parameters between it and its drop in the device's order.
    """
    found: list[Gathered] = []
    if all(stage.gather is None for stage in problem.stages):
        return found
    holder = problem.parameters.holder
    for device in range(len(schedule.orders)):
        now: dict[int, Gathered] = {}
        dropped: Pass | None = None
        for p in schedule.passes_on(device):
            if p.kind is UNSHARD:
                now[p.stage] = Gathered(p, makes_room=None if problem.parameters.window is None else dropped)
                found.append(now[p.stage])
            elif p.kind is RESHARD and p.stage in now:
                now.pop(p.stage).release = dropped = p
            elif uses_parameters(problem, p.kind, p.stage) and holder(p.stage) in now:
                now[holder(p.stage)].users.append(p)
    return found
