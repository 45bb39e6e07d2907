"""Which values schedules can have: whole multiples of a step, and for the span also fractions of it.

For the span every device begins as late as the others let it, so that the least span of an order is the mean length of
a cycle of paths, each from the first pass of one device to the last of another. There are at most as many paths on it
as devices.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, gcd

from pipesched.checking.coverage import unknown
from pipesched.problem.problem import Objective, Problem


def least_attainable(problem: Problem, at_least: Fraction | int) -> Fraction:
    """The least value in ticks that a best schedule may have, if none is below this one."""
    step = _step(problem)
    return min(step * Fraction(ceil(at_least * parts / step), parts) for parts in range(1, _parts(problem) + 1))


def least_attainable_above(problem: Problem, refuted: Fraction | int) -> Fraction:
    """The same if no schedule has exactly this value or less."""
    step = _step(problem)
    return min(step * Fraction(floor(refuted * parts / step) + 1, parts) for parts in range(1, _parts(problem) + 1))


def greatest_attainable_below(problem: Problem, bound: Fraction | int) -> Fraction:
    """The greatest value in ticks below the bound that a best schedule may have."""
    step = _step(problem)
    return max(step * Fraction(ceil(bound * parts / step) - 1, parts) for parts in range(1, _parts(problem) + 1))


def _step(problem: Problem) -> Fraction:
    """All durations and transfers are multiples of it; a tick where there are more than those known here."""
    if unknown(problem):
        return Fraction(1)
    times = [lag for row in problem.links for lag in row]
    for stage in problem.stages:
        times += [stage.forward, stage.backward, stage.weight or 0, stage.fused, stage.transfer, stage.overlapped or 0]
    return Fraction(gcd(*times) or 1)


def _parts(problem: Problem) -> int:
    """The most paths on a cycle; one where the same device always begins first and ends last."""
    if problem.objective is not Objective.SPAN:
        return 1
    device_of = problem.placement.stage_device
    chains = [chain for chain in problem.placement.chains if problem.microbatches_of[chain[0]]]
    never_split = all(stage.weight is None for stage in problem.stages)
    if never_split and len({device_of[chain[0]] for chain in chains}) == 1:
        return 1
    return len({device_of[stage] for chain in chains for stage in chain})
