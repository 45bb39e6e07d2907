"""Published rules that save activation memory, applied to an order of passes: offloading or recomputation.

A reload waits for the end of the pass two before its backward, so that it runs during the one between. Under a memory
limit it may have to wait for more; the solver decides what fits.
"""

from __future__ import annotations

from collections.abc import Callable

from heuristics.building.requirements import all_may_offload
from pipesched.deadline import asking
from pipesched.errors import DoesNotApply
from pipesched.problem.passes import BW, OFFLOAD, RECOMPUTATIONS, RELOAD, B, F, Pass, PassKind, Task
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, Wait, schedule_of
from pipesched.simulation.simulator import simulate

Chosen = Callable[[Pass], bool]


def uniform_recompute(problem: Problem, schedule: Schedule) -> Schedule:
    """Return the order with every activation recomputed, in its first mode, right before its backward (Megatron).

    Raises `DoesNotApply` unless every stage has a mode of recomputation.
    """
    if not all(stage.recompute for stage in problem.stages):
        raise DoesNotApply("needs a way to recompute on every stage: give memory.recompute")
    return _saved(problem, schedule, RECOMPUTATIONS[0], lambda _: True, ahead=0)


def full_offload(problem: Problem, schedule: Schedule) -> Schedule:
    """Return the order with activations copied out right after their forward, and back one pass before their backward.

    These are the activations whose copies fit between the two passes, and all that their stage may not keep. Raises
    `DoesNotApply` unless every activation may be offloaded.
    """
    return _offload(problem, schedule, lambda _: True)


def half_offload(problem: Problem, schedule: Schedule) -> Schedule:
    """Return the order with half of the activations offloaded: each device's first half of chunks.

    These live longest. With one chunk per device it is the even micro-batches instead, with an odd number of chunks the
    smaller part. Of these activations, those whose copies fit between their passes are offloaded; in addition all
    activations that their stage may not keep. Raises `DoesNotApply` unless every activation may be offloaded.
    """
    place = {s: n for stages in problem.placement.stages_of for n, s in enumerate(stages)}
    chunks = problem.placement.stages // problem.devices
    if chunks == 1:
        return _offload(problem, schedule, lambda p: p.microbatch % 2 == 0)
    return _offload(problem, schedule, lambda p: place[p.stage] < chunks // 2)


def _offload(problem: Problem, schedule: Schedule, chosen: Chosen) -> Schedule:
    """Return the order with those activations offloaded whose F is `chosen`, if copies fit between F and backward.

    Copies fit if both together are shorter than the time between, in the order without copies. An activation that its
    stage may not keep is offloaded in any case. Raises `DoesNotApply` unless every activation may be offloaded.
    """
    all_may_offload(problem)
    alone = simulate(problem.keeping_activations(), schedule)
    ready = {p[1:]: alone.end(p) for p in schedule.passes() if p.kind is F}
    needed = {p[1:]: alone.start(p) for p in schedule.passes() if p.kind in (B, BW)}

    def fits(p: Pass) -> bool:
        copies = problem.stages[p.stage].offload
        assert copies is not None
        return needed[p[1:]] - ready[p[1:]] > copies.out_ticks + copies.in_ticks

    def copied(p: Pass) -> bool:
        return not problem.stages[p.stage].may_keep or (chosen(p) and fits(p))

    return _saved(problem, schedule, OFFLOAD, copied, ahead=1)


def _saved(problem: Problem, schedule: Schedule, mode: PassKind, chosen: Chosen, ahead: int) -> Schedule:
    """Return the order in which the chosen activations are offloaded or recomputed, by passes of kind `mode`.

    The reload or recomputation is `ahead` passes before the backward, an OFFLOAD right after the forward.
    """
    orders: list[list[Pass]] = []
    waits: list[Wait] = []
    for device in asking(range(problem.devices)):
        passes = schedule.passes_on(device)
        backward = {p[1:]: n for n, p in enumerate(passes) if p.kind in (B, BW)}
        saved = {p[1:]: n for n, p in enumerate(passes) if p.kind is F and chosen(p)}
        before: dict[int, list[Pass]] = {}
        for which, forward in saved.items():
            at = max(forward + 1, backward[which] - ahead)
            again = Pass(RELOAD if mode is OFFLOAD else mode, *which)
            before.setdefault(at, []).append(again)
            if mode is OFFLOAD and at > forward + 1:
                waits.append(Wait(_end(problem, passes[at - 1]), Task(again)))
        order: list[Pass] = []
        for n, p in enumerate(passes):
            order += [*before.get(n, ()), p]
            if mode is OFFLOAD and p.kind is F and p[1:] in saved:
                order.append(p._replace(kind=OFFLOAD))
        orders.append(order)
    return Schedule(schedule_of(orders).orders, schedule.name, waits=waits)


def _end(problem: Problem, p: Pass) -> Task:
    return Task(p, problem.network.ends[p[:2]][-1])
