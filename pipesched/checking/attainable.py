"""Attainable objective values: multiples of a step, and for the span also fractions of the step.

A bound proved by an argument is rounded up to the next such value. Under the span every device begins as late as the
others allow, so that the least span of an order is the mean length of a cycle of paths, each from the first pass of one
device to the last of another. A cycle has at most as many paths as there are devices.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, gcd

from pipesched.checking.coverage import unknown
from pipesched.problem.passes import F
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, Ticks


def least_attainable(problem: Problem, at_least: Fraction | Ticks) -> Fraction:
    """Return the least attainable value, in ticks, that is at least `at_least`."""
    step = _step(problem)
    return min(step * Fraction(ceil(at_least * parts / step), parts) for parts in range(1, denominators(problem) + 1))


def least_attainable_above(problem: Problem, refuted: Fraction | Ticks) -> Fraction:
    """Return the least attainable value, in ticks, that is above `refuted`."""
    step = _step(problem)
    return min(
        step * Fraction(floor(refuted * parts / step) + 1, parts) for parts in range(1, denominators(problem) + 1)
    )


def greatest_attainable_below(problem: Problem, bound: Fraction | Ticks) -> Fraction:
    """Return the greatest attainable value, in ticks, that is smaller than `bound`."""
    step = _step(problem)
    return max(step * Fraction(ceil(bound * parts / step) - 1, parts) for parts in range(1, denominators(problem) + 1))


def _step(problem: Problem) -> Fraction:
    """Return the largest step, in ticks, of which all durations and transfers are multiples.

    It is one tick if all are 0, or if the problem uses quantities that the check does not know (`coverage.unknown`).
    """
    if unknown(problem):
        return Fraction(1)
    times = [lag for row in problem.links for lag in row]
    for stage in problem.stages:
        times += [stage.forward, stage.backward, stage.weight or 0, stage.fused, stage.transfer]
        times += [ticks or 0 for ticks in stage.blocks]
    return Fraction(gcd(*times) or 1)


def denominators(problem: Problem) -> int:
    """Return the largest denominator, in steps of the problem, that the least value of an order may have as a fraction.

    Under the span it is the largest number of paths on a cycle: one for each device that runs passes; or 1 if the same
    device always begins first and ends last. For every other objective it is 1.
    """
    if not problem.objective.by_device:
        return 1
    where, walks = problem.placement.stage_device, problem.microbatches_of
    walked = [stage for stage, walk in enumerate(walks) if len(walk)]
    outermost = {where[stage] for stage in walked if _may_begin(problem, stage) or _may_end(problem, stage)}
    return 1 if len(outermost) <= 1 else len({where[stage] for stage in walked})


def _may_begin(problem: Problem, stage: StageId) -> bool:
    """Return True if some pass of the stage needs no pass of another stage.

    Such passes are a forward at the start of a chain, unless another chain feeds all of its micro-batches, a task of a
    forward that needs no input, and a gathering of parameters.
    """
    own = problem.stages[stage]
    fed = any(arc.after == stage and not (arc.backward or arc.places) for arc in problem.chain_arcs.arcs)
    first = problem.placement.previous[stage] is None and not fed
    return first or own.gather is not None or any(not task.needs_input for task in own.tasks_of(F))


def _may_end(problem: Problem, stage: StageId) -> bool:
    """Return True if some pass of the stage is needed by no pass of another stage.

    Such passes are a W, the backward of a chain's first stage (unless passes of another chain need all of them), and
    collectives and the optimizer step.
    """
    own = problem.stages[stage]
    after = any(
        arc.before == stage and arc.backward and not (arc.waits_for_forwards or arc.places)
        for arc in problem.chain_arcs.arcs
    )
    last = problem.placement.previous[stage] is None and not after
    return last or own.weight is not None or own.gather is not None or bool(own.once)
