"""Free memory of a schedule, and the problem that reserves an amount of it.

It is the least that a device has left at its peak.
"""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps


def reserving(problem: Problem, amount: MemorySteps) -> Problem:
    """Return the problem with each limited capacity smaller by `amount`, and with the time as its only objective.

    Its schedules are those of `problem` that leave at least `amount` of memory free on every device with a limit. The
    amount is in steps of the resolution.
    """
    return replace(_with_less(problem, amount), objective=replace(problem.objective, leaves=None))


def giving_back(reserved: Problem, problem: Problem, amount: MemorySteps) -> Problem:
    """Undo `reserving`.

    Return `reserved` with each limited capacity larger by `amount`, and with the objective of `problem`. The amount is
    in steps of the resolution.
    """
    return replace(_with_less(reserved, -amount), objective=problem.objective)


def most_left(problem: Problem) -> MemorySteps | None:
    """Return an upper bound on the free memory of any schedule, in steps of the resolution.

    None if none fits the memory. The bound is the largest amount that can be reserved on all devices before
    `why_infeasible` finds a reason. Where that check is exact, some schedule leaves as much. At least one device must
    have a limited memory.
    """
    if why_infeasible(problem) is not None:
        return None
    low, high = 0, min(room for room in problem.room if room is not None)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (low, middle - 1) if why_infeasible(reserving(problem, middle)) is not None else (middle, high)
    return low


def _with_less(problem: Problem, amount: MemorySteps) -> Problem:
    pools = (
        pool if pool.capacity is None else replace(pool, capacity=pool.capacity - amount) for pool in problem.pools
    )
    return replace(problem, pools=tuple(pools))
