"""The least time of an iteration before the first forward and after the last backward, spent on parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import BW, ONCE, B, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks


def least_parameter_ticks(problem: Problem) -> Ticks:
    """Return the least ticks an iteration works for parameters before its first forward and after its last backward.

    For a span they are the least ticks that any single device spends so.
    """
    if problem.objective.by_device:
        return _least_of_a_device(problem)
    return _least_before_forwards(problem) + _least_after_backwards(problem)


def _least_of_a_device(problem: Problem) -> Ticks:
    """Return the least ticks that any device surely takes before its first forward and after its last backward."""
    found, visited = [], {where.device for where in _further_resources(problem)}
    for device, stages in enumerate(problem.placement.stages_of):
        here = [s for s in stages if problem.microbatches_of[s]]
        if here and device in visited:
            # A task of another device's pass may begin first or end last.
            found.append(0)
        elif here:
            after = 0 if any(_is_sent(problem, s) for s in here) else min(_once(problem, s, device) for s in here)
            found.append(min(_gathering(problem, s) for s in here) + after)
    return min(found)


def _further_resources(problem: Problem) -> Iterator[Resource]:
    """Yield the resources that tasks of micro-batches occupy besides the stream of their pass."""
    for tasks in problem.network.of_microbatches.tasks.values():
        for task in tasks:
            yield from task.resources[1:]


def _is_sent(problem: Problem, stage: StageId) -> bool:
    """Return True if a task may send the gradient of a stage; it may last until reduction and step have ended."""
    to, where = problem.placement.previous[stage], problem.placement.stage_device
    return problem.resources.transfer_stream is not None and to is not None and where[to] != where[stage]


def _least_after_backwards(problem: Problem) -> Ticks:
    """Return the least ticks from the end of all backwards to the end of the iteration.

    The last pass of a micro-batch to end is a backward of some stage, whose reduction and step follow.
    """
    devices = range(problem.devices)
    return min(
        max(_once(problem, stage, device) for device in devices)
        for stage, walked in enumerate(problem.microbatches_of)
        if walked
    )


def _least_before_forwards(problem: Problem) -> Ticks:
    """Return the least ticks until the first forward.

    They are those of gathering its parameters, the least over the chains' first stages.
    """
    first = {chain[0] for chain in problem.placement.chains if problem.microbatches_of[chain[0]]}
    return min(_gathering(problem, stage) for stage in first)


def _gathering(problem: Problem, stage: StageId) -> Ticks:
    own = problem.stages[problem.parameters.holder(stage)].gather
    return 0 if own is None else own.task.ticks


def _once(problem: Problem, stage: StageId, device: DeviceId) -> Ticks:
    """Return a lower bound on the ticks that a device works after the last task of a stage's backwards.

    It is the stage's reduction and step. After a pass of all stages on which these wait, it is all that the device
    still runs on one of its streams. 0 for a stage without such work, or whose weight passes it does not wait for.
    """
    frozen = problem.stages[stage].forward_only
    if frozen or ((W, stage) in problem.network.tasks and not _awaited(problem, stage)):
        return 0
    once = [one for _, one in problem.parameters.line(problem.parameters.holder(stage), problem.stages)]
    if not once:
        return 0
    last = max((place for place, one in enumerate(once) if one.of_all), default=len(once) - 1)
    later = sum(one.parts * one.task.ticks for one in once[1 : last + 1]) + _after_all(problem, device)
    return later + once[0].task.ticks * _parts_after(problem, stage, once[0].parts)


def _after_all(problem: Problem, device: DeviceId) -> Ticks:
    """Return the most ticks that one stream of a device works after the last pass that serves all stages.

    0 without one.
    """
    kinds = [one.kind for stage in problem.stages for one in stage.once if one.of_all]
    on = Counter[str]()
    for s in problem.parameters.trained(problem.stages) if kinds else ():
        for one in problem.stages[s].once:
            if problem.placement.stage_device[s] == device and ONCE.index(one.kind) > max(map(ONCE.index, kinds)):
                on[one.task.stream] += one.parts * one.task.ticks
    return max(on.values(), default=0)


def _awaited(problem: Problem, stage: StageId) -> bool:
    """Return True if a task of W waits for the last task of B; otherwise B may end after reduction and step."""
    last = len(problem.tasks_of(B, stage)) - 1
    return any(task.after in (None, last) for task in problem.tasks_of(W, stage))


def _parts_after(problem: Problem, stage: StageId, number: int) -> int:
    """Return the least number of buckets that start only after a stage's last weight task has ended.

    The reduction has `number` buckets.
    """
    of = problem.dependencies
    waiting = Counter[tuple[PassKind, int]]()
    kinds = [kind for kind in (W, BW) if (kind, stage) in problem.network.tasks]
    for kind in kinds:
        waiting.update((kind, part) for at in range(number) for part in of.ends_of(kind, stage, (at, number)))
    return min(count for (kind, part), count in waiting.items() if kind is W or part == of.ends_of(kind, stage)[-1])
