"""Relaxations with a mistake that raises some optimum, to be found by tests."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.relaxations import PARTNERS_MEMORY, PASS_MEMORY, SAVED_ACTIVATIONS


def _less_all_workspace(problem: Problem) -> Problem:
    found = PASS_MEMORY.relax(problem)
    if found is problem:
        return found
    most = [sum(sum(problem.stages[s].workspace) for s in own) for own in problem.placement.stages_of]
    return found.with_room([None if own is None else own - more for own, more in zip(problem.room, most, strict=True)])


# Room less all workspace of a device, not the least of passes that take activations.
ROOM_LESS_ALL_WORKSPACE = replace(PASS_MEMORY, relax=_less_all_workspace)
# Activations that may be copied or recomputed, kept whole.
ACTIVATIONS_KEPT_WHOLE = replace(SAVED_ACTIVATIONS, relax=Problem.keeping_activations)


def _in_own_memory(problem: Problem) -> Problem:
    found = PARTNERS_MEMORY.relax(problem)
    return found if found is problem else found.with_room(problem.room)


# What partners keep for earlier stages counted in the memory of one device, not of its group.
PARTNERS_IN_OWN_MEMORY = replace(PARTNERS_MEMORY, relax=_in_own_memory)
