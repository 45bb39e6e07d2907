"""Argument: what moves to a device of a group stays in the group's memory, until its micro-batch's backward ends.

A group is a set of devices, with all devices that their activations may move to and all whose activations may move to
them. When a forward of a stage has begun, and its backward not ended, the same micro-batch's forwards of all stages
before it on its chain have ended, and their backwards have not. So, summed over the activations of a device, what each
keeps in the group with what its micro-batch keeps on other devices of the group for stages before, back to the last
stage on the same device, is in the memory of the group at one time, and nothing is counted twice.
"""

from __future__ import annotations

from dataclasses import replace

from pipesched.checking.finding import RefusedEvidenceError
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId
from pipesched.problem.stage import Stage
from pipesched.results.evidence import MemoryOfPartners


def with_memory_of_partners(poorer: Problem, problem: Problem, relaxation: MemoryOfPartners) -> Problem:
    """Return `poorer` in which the devices that the evidence names have the memory of their group in `problem`.

    `poorer` is `problem` without copies and recomputations, with the same stages and devices (`with_least_memory`). An
    activation on such a device takes what its micro-batch keeps in the group for its stage and for stages before it,
    and its backward frees correspondingly more. Raises `RefusedEvidenceError` for a device without a group, or with a
    group in which some memory is unlimited.
    """
    pools, stages = list(poorer.pools), list(poorer.stages)
    for device in dict.fromkeys(relaxation.devices):
        if device not in range(problem.devices):
            raise RefusedEvidenceError(f"memory of partners of device {device}, which does not exist")
        group = _group(problem, device)
        rooms = [problem.room[one] for one in group]
        limited = [room for room in rooms if room is not None]
        if len(group) < 2:
            raise RefusedEvidenceError(f"device {device} has no partners: no activations move to it or from it")
        if len(limited) < len(rooms):
            raise RefusedEvidenceError(f"device {device} has partners of unlimited memory")
        pools[device] = Pool(sum(limited) + problem.static[device], pools[device].static)
        for stage in problem.placement.stages_of[device]:
            more = _kept_since_last_own_stage(problem, stage, group) - stages[stage].activation
            own = stages[stage]
            stages[stage] = replace(own, activation=own.activation + more, freed=own.freed + more)
    return replace(poorer, pools=tuple(pools), stages=tuple(stages))


def _group(problem: Problem, device: DeviceId) -> set[DeviceId]:
    """Return a device and those that store activations in its memory or take them from it, directly or not."""
    moves = [
        (problem.placement.stage_device[s], stage.offload.to)
        for s, stage in enumerate(problem.stages)
        if stage.offload is not None and stage.offload.to is not None
    ]
    found, more = {device}, {device}
    while more:
        more = {one for pair in moves if found.intersection(pair) for one in pair} - found
        found |= more
    return found & set(range(problem.devices))


def _kept_since_last_own_stage(problem: Problem, stage: StageId, group: set[DeviceId]) -> MemorySteps:
    """Return the memory that a micro-batch keeps in the group for a stage and those since the last on its device."""
    where, before = problem.placement.stage_device, problem.placement.previous
    total, at = _kept(problem.stages[stage]), before[stage]
    while at is not None and where[at] != where[stage]:
        total += _kept(problem.stages[at]) if where[at] in group else 0
        at = before[at]
    return total


def _kept(stage: Stage) -> MemorySteps:
    """Return the least memory of an activation, over its modes, that stays in the memory of some device."""
    amounts = [stage.activation] if stage.may_keep else []
    if stage.offload is not None:
        amounts.append(stage.activation - (stage.offload.amount if stage.offload.to is None else 0))
    return min(amounts + [mode.keeps for mode in stage.recompute])
