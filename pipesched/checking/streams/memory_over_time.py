"""Argument: activations need memory for a time, and all of it must fit into the device's memory times time.

An activation is in its device's memory at least as long as the longest path from its forward to its release: all of it
until its backward has ended, the remaining part until its weight pass has. The memory level is a whole number of the
largest unit that divides every amount.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import gcd

from pipesched.checking.finding import RefusedEvidenceError
from pipesched.checking.streams.task_paths import Node, TaskPaths
from pipesched.checking.streams.tasks import limited_room, split_and_checked, to_and_from
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps, StageId, Ticks
from pipesched.results.evidence import MemoryOfDevice


def memory_of_tasks(problem: Problem, evidence: MemoryOfDevice) -> Fraction:
    """Return the bound, in ticks: the shortest path to the device, the time its memory is needed for, the path from it.

    Raises `RefusedEvidenceError` if the device has no limit of memory, has no memory for an activation, or may need
    memory outside of the time that counts, or if the evidence's owner does not fit the objective; `NotCoveredError`
    where backwards cannot all be split.
    """
    device, owner = evidence.device, evidence.owner
    room, problem = limited_room(problem, device), split_and_checked(problem, evidence)
    stages = [problem.stages[stage] for stage in problem.placement.stages_of[device]]
    sizes = [size for one in stages for size in (one.activation, one.freed if one.weight is not None else 0)]
    unit = gcd(*sizes) or 1
    usable = room // unit * unit
    if usable <= 0:
        raise RefusedEvidenceError(f"device {device} has no memory for an activation")
    needed, to, back = 0, list[int | None](), list[int | None]()
    for chain in problem.placement.chains:
        count = len(problem.microbatches_of[chain[0]])
        here = [stage for stage in chain if count and problem.placement.stage_device[stage] == device]
        if not here:
            continue
        paths = TaskPaths(problem, chain)
        heads, tails = to_and_from(paths, owner)
        for stage in here:
            to.append(_least(heads[Node(F, stage, 0)]))
            since = _since(paths, Node(F, stage, 0))
            for size, ends in _parts_of_activation(paths, stage):
                needed += count * size * max(since[end] for end in ends)
                back += [_least(tails[end]) for end in ends]
    known = [path for path in back if path is not None]
    if not to or None in to or len(known) < len(back):
        raise RefusedEvidenceError(f"memory of device {device} may be needed outside of the span of device {owner}")
    return min(path for path in to if path is not None) + Fraction(needed, usable) + min(known)


def _least(times: list[Ticks] | None) -> Ticks | None:
    """Return the earliest of a task's times, which are ascending by micro-batch; None if no path leads to the task."""
    return None if times is None else times[0]


def _parts_of_activation(paths: TaskPaths, stage: StageId) -> Iterator[tuple[MemorySteps, list[Node]]]:
    """Yield each part of a stage's activation as (memory, tasks of which the last to end frees it)."""
    own = paths.problem.stages[stage]
    if own.weight is None:
        yield own.activation, [Node(BW, stage, len(own.tasks_of(BW)) - 1)]
        return
    yield own.freed, [Node(B, stage, len(own.tasks_of(B)) - 1)]
    yield own.activation - own.freed, [Node(W, stage, number) for number in range(len(own.tasks_of(W)))]


def _since(paths: TaskPaths, begin: Node) -> dict[Node, Ticks]:
    """Return the least ticks from the start of a task to its end, and to the end of each that always follows it."""
    found = {begin: paths.ticks[begin]}
    for node, needs in paths.needs.items():
        paths_to_start = [found[one] + lag for one, lag in needs if one in found]
        if paths_to_start and node != begin:
            found[node] = max(paths_to_start) + paths.ticks[node]
    return found
