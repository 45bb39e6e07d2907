"""Relaxation that drops workspace, and memory kept until the end of the iteration."""

from __future__ import annotations

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps
from pipesched.problem.stage import PassMemory

ARGUMENT = (
    "No memory holds more without workspace and what is kept until the end. All else is highest when a pass has just "
    "taken some of it: F, or a B that takes more than it gives back, beside its own workspace. So all of it fits in "
    "what the least of these leaves of the memory."
)


def drop_pass_memory(problem: Problem) -> Problem:
    """Return the problem without `workspace` and `until_end`, each device's memory reduced by its least workspace.

    The least workspace is taken over the passes that take memory for later passes; it is 0 where copies or
    recomputations take memory. The problem itself if it has neither field. The problem must not gather parameters,
    since gathers take memory outside of all other passes.
    """
    if not problem.network.has_pass_memory:
        return problem
    room = [None if own is None else own - _least_workspace(problem, d) for d, own in enumerate(problem.room)]
    none = [PassMemory()] * len(problem.stages)
    return problem.with_room(room).with_stages(workspace=none, until_end=none)


def _least_workspace(problem: Problem, device: DeviceId) -> MemorySteps:
    """Return the least workspace among a device's passes that take memory which later passes free.

    0 if there are none, or some of them are copies or recomputations, which have no workspace.
    """
    if problem.network.mode_passes_taking(device):
        return 0  # these have no workspace
    found = list[int]()
    for stage in (problem.stages[s] for s in problem.placement.stages_of[device] if problem.microbatches_of[s]):
        found += [stage.workspace.forward] * (stage.activation + stage.kv_cache.taken > 0)
        found += [stage.workspace.backward] * (stage.freed < 0 and stage.weight is not None)
    return min(found, default=0)
