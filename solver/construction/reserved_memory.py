"""Memory reserved for workspace: capacities less the largest workspace and all memory that stays until the end."""

from __future__ import annotations

from pipesched.problem.problem import Problem
from pipesched.problem.stage import PassMemory


def with_reserve(problem: Problem) -> Problem:
    """Return a problem without memory of passes, with capacities so reduced that each of its orders fits the original.

    Memory of passes is their workspace, and what stays in use until the end of the iteration. Not every order that fits
    the original fits the result, whose capacities may even be negative. A problem without memory of passes is returned
    unchanged.
    """
    if not problem.network.has_pass_memory:
        return problem
    room = list(problem.room)
    for device, own in enumerate(problem.room):
        stages = problem.placement.stages_of[device]
        running = max((max(problem.stages[s].workspace) for s in stages), default=0)
        kept = sum(sum(problem.stages[s].until_end) * len(problem.microbatches_of[s]) for s in stages)
        room[device] = None if own is None else own - running - kept
    none = [PassMemory()] * len(problem.stages)
    return problem.with_room(room).with_stages(workspace=none, until_end=none)
