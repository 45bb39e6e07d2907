"""Partners: devices whose activations move to each other's memory, and whether they can hold one micro-batch."""

from __future__ import annotations

from pipesched.problem.formatting import listed_stages, memory_text
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId

# Loads of devices looked at for one micro-batch: beyond them nothing is refused, and the exact model decides.
_MOST_LOADS = 1_000


def groups_of_partners(problem: Problem) -> list[tuple[DeviceId, ...]]:
    """Return the groups of two or more devices that store activations in each other's memory.

    They do so directly or through others. Each group is a sorted tuple of device numbers. Offload to hosts does not
    count.
    """
    group = {device: frozenset((device,)) for device in range(problem.devices)}
    for own, stage in zip(problem.placement.stage_device, problem.stages, strict=True):
        if stage.offload is not None and stage.offload.to is not None:
            both = group[own] | group[stage.offload.to]
            group.update(dict.fromkeys(both, both))
    return [tuple(sorted(one)) for one in dict.fromkeys(group.values()) if len(one) > 1]


def why_partners_lack_memory(problem: Problem) -> str | None:
    """Return the reason if a group of partners cannot hold one micro-batch together; else None.

    While a stage's forward runs, the forwards of all earlier stages of its chain have ended and their backwards have
    not begun. The activation of each earlier stage is on its own device, or where one of the stage's modes has moved
    it; that of the stage itself is on its own device. All combinations of modes are tried. The check of a chain ends,
    as if it fitted, once more than 1,000 different memory levels are possible.
    """
    where, scale = problem.placement.stage_device, problem.walks.scale
    for group in groups_of_partners(problem):
        for number, chain in enumerate(problem.placement.chains):
            factor = max((scale[j] for j in problem.walking[number]), default=0) if scale else 1
            loads, before = {tuple(0 for _ in group)}, list[int]()
            for stage in (s for s in chain if where[s] in group and problem.microbatches_of[s]):
                running = _placed(
                    problem, loads, group, [{where[stage]: int(problem.stages[stage].activation * factor)}]
                )
                if not running:
                    return _lacking(problem, group, [*before, stage])
                states = [{on: int(size * factor) for on, size in one.items()} for one in _states(problem, stage)]
                loads, before = _placed(problem, loads, group, states), [*before, stage]
                if len(loads) > _MOST_LOADS:
                    break
    return None


def _placed(
    problem: Problem,
    loads: set[tuple[MemorySteps, ...]],
    group: tuple[DeviceId, ...],
    states: list[dict[DeviceId, MemorySteps]],
) -> set[tuple[MemorySteps, ...]]:
    """Return the memory levels of a group's devices after one more activation: all sums of `loads` and `states`.

    A level has an entry for each device of `group`, in that order, without static memory; a state is the memory that
    the activation may take, by device. Levels above what static memory leaves of a device's capacity are left out.
    """
    room = [problem.room[device] for device in group]
    found = {
        tuple(load + one.get(device, 0) for load, device in zip(known, group, strict=True))
        for known in loads
        for one in states
    }
    return {one for one in found if all(most is None or load <= most for load, most in zip(one, room, strict=True))}


def _states(problem: Problem, stage: StageId) -> list[dict[DeviceId, MemorySteps]]:
    """Return the states of an activation between its forward and its backward.

    Each is the memory that the activation takes, by device. In the first state all of it is on its own device; each
    other state is after one of its modes (offload, recomputation).
    """
    own, device = problem.stages[stage], problem.placement.stage_device[stage]
    found = [{device: own.activation}]
    for stays, moves in own.memory_until_backward.values():
        to = None if own.offload is None or not moves else own.offload.to
        found.append({device: stays} if to is None else {device: stays, to: moves})
    return found


def _lacking(problem: Problem, group: tuple[DeviceId, ...], stages: list[StageId]) -> str:
    """Return a sentence on why the activations of one micro-batch on these stages do not fit into the group."""
    named = list(dict.fromkeys(stage // problem.chain_arcs.pieces for stage in stages))
    rooms = [memory_text(problem, room + problem.static[d]) for d in group if (room := problem.room[d]) is not None]
    static = sum(problem.static[device] for device in group)
    more = f" in addition to {memory_text(problem, static)} of static memory" if static else ""
    return (
        f"memory: however activations move between them, devices {' and '.join(map(str, group))} cannot hold those of "
        f"{listed_stages(named)} of one micro-batch at once{more}; their capacities are {' and '.join(rooms)}"
    )
