"""Relaxation in which devices whose activations move to each other's memory each have the memory of their group."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from pipesched.problem.partners import groups_of_partners
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId
from pipesched.problem.relaxed.least_memory import with_least_activations

ARGUMENT = (
    "What moves to a partner stays in the memory of the group, that of all partners together. While a micro-batch is "
    "in flight on a stage, it is so on all stages before it on its chain: their forwards have ended, their backwards "
    "have not. So what all micro-batches in flight on a device keep, with what they keep on the stages of partners "
    "before theirs, at no time exceeds the memory of the group."
)


class _Shared(NamedTuple):
    """The `devices` of a group of partners that the group's memory `room` limits more than their own memory does.

    `activation` is by stage of these devices the memory that a micro-batch in flight there keeps in the group.
    """

    devices: tuple[DeviceId, ...]
    group: tuple[DeviceId, ...]
    room: MemorySteps
    activation: dict[StageId, MemorySteps]


def share_memory(problem: Problem) -> Problem:
    """Return the problem without copies and recomputations in which some partners have their whole group's memory.

    These are the devices in `sharing`. On them, an activation takes what its micro-batch keeps in the group's memory:
    for this stage, and for the partners' stages between it and the previous stage on the same device. Every other
    device has its own memory, of which an activation takes the least of its modes. The problem itself where no device
    shares.
    """
    groups = _shared(problem)
    if not groups:
        return problem
    found, room = with_least_activations(problem), list(problem.room)
    activation = [stage.activation for stage in found.stages]
    for shared in groups:
        for device in shared.devices:
            room[device] = shared.room
        for stage, kept in shared.activation.items():
            activation[stage] = kept
    freed = [own.freed + more - own.activation for own, more in zip(found.stages, activation, strict=True)]
    return found.with_stages(activation=activation, freed=freed).with_room(room)


def sharing(problem: Problem) -> tuple[DeviceId, ...]:
    """Return the devices, in ascending order, that the common memory of their partners limits more than their own does.

    Two numbers are compared, both fractions: how often one activation of each of the device's stages fits into its own
    memory, each with the least of its modes, and how often into the memory of the whole group, each with what its
    micro-batch keeps there for this stage and for earlier stages of partners.

    Empty without partners. Groups with a device of unlimited memory are left out.
    """
    return tuple(sorted(device for shared in _shared(problem) for device in shared.devices))


def note(problem: Problem) -> str:
    """Return the sentence that certificates of the relaxed problem add, naming the devices and the memory they have."""
    groups = [(_named(shared.devices), len(shared.devices), _named(shared.group)) for shared in _shared(problem)]
    each = [f"{devices} {'has' if n == 1 else 'each have'} the memory of {group}" for devices, n, group in groups]
    return (
        f"So much it takes even if copies and recomputations take no time, and {', '.join(each)}, where also what "
        "micro-batches keep on the others for earlier stages is."
    )


def _named(devices: Sequence[DeviceId]) -> str:
    """Return "device 1", "devices 1 and 2", "devices 1, 2 and 3"."""
    *first, last = map(str, devices)
    return f"devices {', '.join(first)} and {last}" if first else f"device {last}"


@lru_cache(maxsize=16)
def _shared(problem: Problem) -> tuple[_Shared, ...]:
    """Return the groups of partners in which some devices are limited more by the group's memory than by their own."""
    least, found = [stage.activation for stage in with_least_activations(problem).stages], list[_Shared]()
    for group in groups_of_partners(problem):
        limited = [own for device in group if (own := problem.room[device]) is not None]
        if len(limited) < len(group):
            continue
        whole, together, devices = sum(limited), _with_partners(problem, group), list[int]()
        for device, room in zip(group, limited, strict=True):
            stages = problem.placement.stages_of[device]
            alone, joint = sum(least[s] for s in stages), sum(together[s] for s in stages)
            devices += [device] if whole * alone < room * joint else []
        if devices:
            kept = {stage: together[stage] for device in devices for stage in problem.placement.stages_of[device]}
            found.append(_Shared(tuple(devices), group, whole, kept))
    return tuple(found)


def _with_partners(problem: Problem, group: tuple[DeviceId, ...]) -> dict[StageId, MemorySteps]:
    """Return for each stage of a group the memory that a micro-batch in flight there keeps in the group's memory.

    It is that of the stage, and of the stages of partners before it on the chain, back to the last one on the same
    device.
    """
    where, found = problem.placement.stage_device, dict[int, int]()
    for chain in problem.placement.chains:
        before = dict.fromkeys(group, 0)  # on partners' stages since the last stage of each device
        for stage in (s for s in chain if where[s] in before):
            own = _kept_in_group(problem, stage)
            found[stage] = own + before[where[stage]]
            before = {device: 0 if device == where[stage] else more + own for device, more in before.items()}
    return found


def _kept_in_group(problem: Problem, stage: StageId) -> MemorySteps:
    """Return the least memory of devices that a stage's activation keeps from forward to backward.

    The minimum is over its modes.
    """
    own = problem.stages[stage]
    to_host = own.offload is None or own.offload.to is None
    return min(keeps + (0 if to_host else moves) for keeps, moves in own.memory_until_backward.values())
