"""Published rules for holding fewer activations, applied to an order of passes: what is offloaded or recomputed.

PipeOffload (arXiv 2503.01328): full offload copies every activation out right after its forward and back one pass
before its backward; half offload does so for every other micro-batch. Uniform recomputation (Megatron-LM,
`--recompute-granularity full --recompute-method uniform`) runs every forward again right before its backward.
"""

from __future__ import annotations

from collections.abc import Callable

from pipesched.errors import DoesNotApply
from pipesched.problem.passes import BW, OFFLOAD, RECOMPUTATIONS, RELOAD, B, F, Pass, PassKind
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of


def uniform_recompute(problem: Problem, schedule: Schedule) -> Schedule:
    """Every activation recomputed by the first way, right before its backward."""
    if not all(stage.recompute for stage in problem.stages):
        raise DoesNotApply("it needs a way to recompute on every stage (memory.recompute)")
    return _saved(problem, schedule, RECOMPUTATIONS[0], lambda _: True, ahead=0)


def full_offload(problem: Problem, schedule: Schedule) -> Schedule:
    """Every activation copied out right after its forward, and back one pass before its backward."""
    return _offload(problem, schedule, lambda _: True)


def half_offload(problem: Problem, schedule: Schedule) -> Schedule:
    """Every other micro-batch as under full offload."""
    return _offload(problem, schedule, lambda p: p.microbatch % 2 == 0)


def _offload(problem: Problem, schedule: Schedule, chosen: Callable[[Pass], bool]) -> Schedule:
    if not all(stage.offload for stage in problem.stages):
        raise DoesNotApply("it needs offload on every stage (memory.offload)")
    return _saved(problem, schedule, OFFLOAD, chosen, ahead=1)


def _saved(problem: Problem, schedule: Schedule, way: PassKind, chosen: Callable[[Pass], bool], ahead: int) -> Schedule:
    """The order with the passes of a way for the activations chosen, `ahead` passes before their backward.

    A last stage whose backward follows its forward at once keeps its activation.
    """
    orders = []
    for device in range(problem.devices):
        passes = schedule.passes_on(device)
        backward = {p[1:]: n for n, p in enumerate(passes) if p.kind in (B, BW)}
        forward = {p[1:]: n for n, p in enumerate(passes) if p.kind is F}
        saved = {p[1:] for p in passes if p.kind is F and chosen(p) and backward[p[1:]] > forward[p[1:]] + 1}
        before: dict[int, list[Pass]] = {}
        for which in saved:
            at = max(forward[which] + 1, backward[which] - ahead)
            before.setdefault(at, []).append(Pass(RELOAD if way is OFFLOAD else way, *which))
        order: list[Pass] = []
        for n, p in enumerate(passes):
            order += [*before.get(n, ()), p]
            if way is OFFLOAD and p.kind is F and p[1:] in saved:
                order.append(p._replace(kind=OFFLOAD))
        orders.append(order)
    return schedule_of(orders, schedule.name)
