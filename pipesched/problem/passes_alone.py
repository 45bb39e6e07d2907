"""Problems reduced to the passes of micro-batches, without the passes that stages run for their parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pipesched.problem.features.parameters import OWN_PARAMETERS
from pipesched.problem.features.saved_activations import COPIES
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps


def passes_alone(problem: Problem, room_for: Callable[[Iterable[MemorySteps]], MemorySteps] = max) -> Problem:
    """Return the problem without passes for parameters (gatherings, reductions, steps), or itself if it has none.

    Its objective is that of the passes alone: the makespan for an iteration, else the problem's own. While a pass uses
    memory, the parameters of its stage are gathered, so their memory is subtracted from the device's (unless
    activations are copied to or from the device). `room_for` picks one amount, in steps, from those of the device's
    stages. With `max`, for searches, an order that fits here fits whichever parameters are gathered; with `min` the
    result is a relaxation (`pipesched.problem.relaxed`).
    """
    if not has_parameters(problem):
        return problem
    stages = tuple(replace(stage, once=(), gather=None) for stage in problem.stages)
    room = [
        own if own is None else own - _gathered(problem, device, room_for) for device, own in enumerate(problem.room)
    ]
    found = problem if room == list(problem.room) else problem.with_room(room)
    return replace(
        found,
        stages=stages,
        parameters=OWN_PARAMETERS,
        objective=problem.objective.of_passes,
    )


def has_parameters(problem: Problem) -> bool:
    """Return True if a stage gathers parameters, reduces gradients or has an optimizer step."""
    return any(stage.kinds_of_parameters for stage in problem.stages)


def _gathered(
    problem: Problem, device: DeviceId, room_for: Callable[[Iterable[MemorySteps]], MemorySteps]
) -> MemorySteps:
    """Return the memory of gathered parameters to subtract from a device's memory.

    0 where copies take memory of the device, since no parameters need be gathered then. Else `room_for` of the amounts
    of the device's stages, such as their maximum.
    """
    holder = problem.parameters.holder
    stages = [s for s in problem.placement.stages_of[device] if problem.microbatches_of[s]]
    if not stages or any(kind in COPIES for kind, _ in problem.network.mode_passes_taking(device)):
        return 0
    gathers = {holder(s): problem.stages[holder(s)].gather for s in stages}
    return room_for([0 if one is None else one.memory for one in gathers.values()])
