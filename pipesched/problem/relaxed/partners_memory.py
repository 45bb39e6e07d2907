"""Relaxation in which devices whose activations move to each other's memory each have the memory of their group."""

from __future__ import annotations

from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.least_memory import hold_least

ARGUMENT = (
    "What moves to a partner stays in the memory of the group, that of all partners together. While a micro-batch is "
    "in flight on a stage, it is so on all stages before it on its chain: their forwards have ended, their backwards "
    "have not. So what all micro-batches in flight on a device keep, with what they keep on the stages of partners "
    "before theirs, at no time exceeds the memory of the group."
)


def share_memory(problem: Problem) -> Problem:
    """Return the problem without saving passes in which partners have the memory of their group.

    On `sharing` devices an activation takes what its micro-batch keeps in the group on that stage, and on partners'
    stages earlier on the chain, up to the last stage on the same device. Other devices have their own memory, of which
    an activation takes the least of its modes. The problem itself where no device shares.
    """
    groups = {device: group for group in _groups(problem) for device in group}
    devices = sharing(problem)
    if not devices:
        return problem
    found, room = hold_least(problem), list(problem.room)
    activation = [stage.activation for stage in found.stages]
    for device in devices:
        room[device] = _whole(problem, groups[device])
        together = _with_partners(problem, groups[device])
        for stage in problem.placement.stages_of[device]:
            activation[stage] = together[stage]
    freed = [own.freed + more - own.activation for own, more in zip(found.stages, activation, strict=True)]
    return found.with_stages(activation=activation, freed=freed).with_room(room)


def sharing(problem: Problem) -> tuple[int, ...]:
    """Return the devices that the memory of their group limits more than their own, measured by one activation of each
    stage."""
    found = list[int]()
    for group in _groups(problem):
        whole = _whole(problem, group)
        if whole is None:
            continue
        least, together = [stage.activation for stage in hold_least(problem).stages], _with_partners(problem, group)
        for device in group:
            stages, own = problem.placement.stages_of[device], problem.room[device]
            alone, joint = sum(least[s] for s in stages), sum(together[s] for s in stages)
            found += [device] if own is not None and whole * alone < own * joint else []
    return tuple(sorted(found))


def note(problem: Problem) -> str:
    """Return the sentence for certificates of the relaxed problem."""
    devices = sharing(problem)
    groups = [f"devices {', '.join(map(str, group))}" for group in _groups(problem) if set(devices) & set(group)]
    return (
        f"So much it takes even if copies and recomputations take no time, and each of {' and each of '.join(groups)} "
        "has the memory of all of them, where also activations that its micro-batches keep on the others are."
    )


def _groups(problem: Problem) -> list[tuple[int, ...]]:
    """Return the groups of several devices that are linked by moves of activations from one to another."""
    group = {device: frozenset((device,)) for device in range(problem.devices)}
    for of, changes in problem.network.elsewhere.items():
        for reservoir, _ in changes:
            if reservoir < problem.devices:
                both = group[problem.network.device_of[of[1]]] | group[reservoir]
                group.update(dict.fromkeys(both, both))
    return [tuple(sorted(one)) for one in dict.fromkeys(group.values()) if len(one) > 1]


def _whole(problem: Problem, group: tuple[int, ...]) -> int | None:
    """Return the memory of all devices of a group; None if some have unlimited memory."""
    limited = [own for device in group if (own := problem.room[device]) is not None]
    return sum(limited) if len(limited) == len(group) else None


def _with_partners(problem: Problem, group: tuple[int, ...]) -> dict[int, int]:
    """Return for each stage of a group what a micro-batch in flight keeps there and on the partners' stages before."""
    where, found = problem.placement.stage_device, dict[int, int]()
    for chain in problem.placement.chains:
        before = dict.fromkeys(group, 0)  # on partners' stages since the last stage of each device
        for stage in (s for s in chain if where[s] in before):
            own = _kept_in_group(problem, stage)
            found[stage] = own + before[where[stage]]
            before = {device: 0 if device == where[stage] else more + own for device, more in before.items()}
    return found


def _kept_in_group(problem: Problem, stage: int) -> int:
    """Return the least over the modes of a stage's activation of what stays in the memory of devices."""
    own = problem.stages[stage]
    to_host = own.offload is None or own.offload.to is None
    return min(keeps + (0 if to_host else moves) for keeps, moves in own.memory_until_backward.values())
