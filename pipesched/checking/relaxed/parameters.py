"""Argument: a gather precedes all forwards; a reduction and a step follow the backward that ends last.

If iterations overlap, and the objective is the longest time from a device's first task to its last, this holds on every
device by itself: the passes of micro-batches there take at most the whole less this. But a pass that sends a gradient
from there may end when reduction and step have ended. A pass of all stages follows the backward that ends last in any
case, and all that a device runs once after it then runs one after the other on each of its streams.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from pipesched.checking.relaxed.further_resources import further_resources_of
from pipesched.checking.relaxed.taken_by_modes import taken_by_modes
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.features.parameters import OWN_PARAMETERS
from pipesched.problem.passes import BW, OFFLOAD, RELOAD, B, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks


def without_parameters(problem: Problem) -> Problem:
    """Return the problem of the passes of micro-batches alone, with their objective.

    Itself if no pass is for parameters. While a pass that takes memory runs, the parameters of its stage are on the
    device, so the memory is reduced by the smallest parameters of a stage. It is not reduced where copies of
    activations may take memory while no parameters are there.
    """
    if not any(stage.gather or stage.once for stage in problem.stages):
        return problem
    pools = []
    for device, pool in enumerate(problem.pools):
        here = [s for s in problem.placement.stages_of[device] if len(problem.microbatches_of[s])]
        owners = [problem.stages[problem.parameters.holder(s)].gather for s in here]
        copied = taken_by_modes(problem, device) & {OFFLOAD, RELOAD}
        least = 0 if copied else min((one.memory if one else 0 for one in owners), default=0)
        pools.append(pool if pool.capacity is None else Pool(pool.capacity - least, pool.static))
    return replace(
        problem,
        stages=tuple(replace(s, gather=None, once=()) for s in problem.stages),
        pools=tuple(pools),
        parameters=OWN_PARAMETERS,
        objective=problem.objective.passes or problem.objective,
    )


def around_passes(problem: Problem) -> Ticks:
    """Return the least ticks of work for parameters before and after all passes of micro-batches; 0 if there is none.

    For a span it is the least that any one device takes.
    """
    if not problem.objective.by_device:
        return ahead_of_forwards(problem) + after_backwards(problem)
    least = None
    for device in range(problem.devices):
        walked = [s for s in problem.placement.stages_of[device] if len(problem.microbatches_of[s])]
        owners = [problem.stages[problem.parameters.holder(s)] for s in walked]
        if owners and any(where.device == device for where in further_resources_of(problem)):
            # What comes first or last on the device may be a task of another one's pass.
            least = 0
        elif owners:
            gathering = min(one.gather.task.ticks if one.gather else 0 for one in owners)
            took = gathering + (0 if _sends(problem, walked) else min(follows(problem, s, [device]) for s in walked))
            least = took if least is None else min(least, took)
    return least or 0


def _sends(problem: Problem, stages: Sequence[StageId]) -> bool:
    """Return True if sending gradients from these stages to other devices may occupy a stream of their device."""
    before, where = problem.placement.previous, problem.placement.stage_device
    pairs = [(one, stage) for stage in stages if (one := before[stage]) is not None]
    return problem.resources.transfer_stream is not None and any(where[one] != where[stage] for one, stage in pairs)


def after_backwards(problem: Problem) -> Ticks:
    """Return the least ticks, for parameters, between the last pass of a micro-batch and the end of an iteration.

    The last of these passes is, or precedes, a last backward task: a BW, a W, or a B whose end no W waits for. What its
    stage runs once (`follows`) is after it. Any stage may be the last, so the least over all stages is returned.
    """
    least = None
    for stage, walked in enumerate(problem.microbatches_of):
        if len(walked):
            took = follows(problem, stage, range(problem.devices))
            least = took if least is None else min(least, took)
    return least or 0


def follows(problem: Problem, stage: StageId, devices: Iterable[DeviceId]) -> Ticks:
    """Return the least ticks of a stage's reduction and step after its last weight task has ended.

    After a pass of all stages they are the most that one of these `devices` runs once on a stream.

    A reduction has buckets, each of which waits for the tasks of every W or BW that compute gradients of its layers.
    The tasks of a W may end in any order; the last task of a BW ends it. 0 where a W may end before the last task of
    its B, and for a frozen stage that no gradient reaches.
    """
    owner, own = problem.stages[problem.parameters.holder(stage)], problem.stages[stage]
    if own.forward_only:
        return 0
    if own.weight is not None and all(
        task.after is not None and task.after + 1 < len(own.tasks_of(B)) for task in own.tasks_of(W)
    ):
        return 0
    everywhere = [one for other in problem.stages for one in other.once if one.of_all]
    place = {kind: n for n, kind in enumerate(PassKind)}
    barrier = max((place[one.kind] for one in everywhere), default=len(place))
    before = [one for one in owner.once if not one.of_all and place[one.kind] < barrier] + everywhere
    if not before:
        return 0
    before.sort(key=lambda one: place[one.kind])
    took = sum(one.parts * one.task.ticks for one in before[1:])
    later = {kind for kind in place if place[kind] > barrier}
    took += max(_after_barrier(problem, device, later) for device in devices)
    each, waiting = before[0].parts, list[int]()
    if own.weight is not None:
        tasks = len(own.tasks_of(W))
        for part in range(tasks):
            waiting.append(sum(at * tasks < (part + 1) * each and part * each < (at + 1) * tasks for at in range(each)))
    tasks = len(own.tasks_of(BW))
    waiting.append(sum((at + 1) * tasks > (tasks - 1) * each for at in range(each)))
    return took + min(waiting) * before[0].task.ticks


def _after_barrier(problem: Problem, device: DeviceId, kinds: Collection[PassKind]) -> Ticks:
    """Return the most ticks that one stream of a device works for passes of these kinds, which run once an iteration.

    Passes of stages that no gradient reaches do not count.
    """
    works: dict[str, int] = {}
    for number in problem.placement.stages_of[device]:
        users = [s for s in range(len(problem.stages)) if problem.parameters.holder(s) == number]
        if not all(problem.stages[s].forward_only for s in users):
            for one in (own for own in problem.stages[number].once if own.kind in kinds):
                works[one.task.stream] = works.get(one.task.stream, 0) + one.parts * one.task.ticks
    return max(works.values(), default=0)


def ahead_of_forwards(problem: Problem) -> Ticks:
    """Return the least ticks of gathering before the first forward: the least over the first stages of chains.

    0 without any.
    """
    least = None
    for chain, walked in zip(problem.placement.chains, problem.walking, strict=True):
        owner = problem.stages[problem.parameters.holder(chain[0])]
        took = owner.gather.task.ticks if owner.gather else 0
        if len(walked) and (least is None or took < least):
            least = took
    return least or 0
