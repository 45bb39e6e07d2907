"""The exact optimum of tiny problems by trying the orders of all devices together; the span to the fraction of a tick.

Knows neither simulator nor solver: a problem is defined by `task_brute_force.Game`, which is written from the
rules of a schedule in docs/concepts.md. No order is left out: not micro-batch order on a stage, nor fused or split
backwards, blocks, or weight passes run at any time.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, lcm
from typing import NamedTuple

import numpy as np

from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.schedule import Schedule
from tests.support import task_brute_force
from tests.support.exhaustive.definition import PassesOf, of_whole_passes
from tests.support.exhaustive.search import NOTHING, TOO_MANY, search
from tests.support.task_brute_force import MOST_ORDERS, MOST_WAITS, TooManyOrdersError

# Pairs of a stage and a micro-batch, and slots that are tried, beyond which a problem is not tiny.
_MOST_PAIRS, MOST_STEPS = 20, 50_000
_ROOM = 2**40


class Answer(NamedTuple):
    """Two answers about a value: some schedule is better (`beaten`); some has just this value (`attained`).

    `attained` is not examined where the value is beaten.
    """

    beaten: bool
    attained: bool


class Optimum(NamedTuple):
    """The least value of a schedule in ticks, and the orders of one that has it."""

    value: Fraction
    schedule: Schedule

    @property
    def whole(self) -> int:
        """The least whole number of ticks that a schedule keeps to."""
        return ceil(self.value)


def optimum(
    problem: Problem,
    objective: Objective,
    at_most: int | None = None,
    in_order: bool | None = None,
    most_steps: int = MOST_STEPS,
) -> Optimum | None:
    """Return the least value of any schedule, and one that has it; None if none fits, or none is at most `at_most`
    ticks.

    With `in_order` forwards and backwards of each stage run in the order of micro-batches, by default where the problem
    says so. `TooManyOrdersError` where that would take too long to find out, and for problems of more than whole
    passes.
    """
    parts = _parts(problem)
    return _least(problem, objective, None if at_most is None else at_most * parts, -1, in_order, most_steps)


def least_value(
    problem: Problem, objective: Objective, at_most: int | None = None, most_steps: int = MOST_STEPS
) -> Fraction | None:
    """Return the least value of any schedule in ticks; None if none fits, or none is at most `at_most` ticks."""
    found = optimum(problem, objective, at_most, most_steps=most_steps)
    return None if found is None else found.value


def least(
    problem: Problem, objective: Objective, most_waits: int = MOST_WAITS, most_orders: int = MOST_ORDERS
) -> Fraction | None:
    """Return the least value in ticks of a problem of any kind, whole passes or not; None if nothing fits.

    `TooManyOrdersError` where there are more than so many waits or orders to try.
    """
    if of_whole_passes(problem):
        return least_value(problem, objective)
    return task_brute_force.optimum(problem, objective, most_waits, most_orders)


def compared(problem: Problem, objective: Objective, value: Fraction, most_steps: int = MOST_STEPS) -> Answer:
    """Compare the optimum with a value in ticks, which is much faster than to compute it where the two are near each
    other."""
    exact = value * _parts(problem)
    found = _least(problem, objective, floor(exact), ceil(exact) - 1, None, most_steps)
    return Answer(beaten=found is not None and found.value < value, attained=found is not None and found.value >= value)


def _parts(problem: Problem) -> int:
    """Return into how many parts a tick is divided to count values: a span is a mean over some of the devices."""
    return lcm(*range(1, problem.devices + 1))


def _least(
    problem: Problem, objective: Objective, limit: int | None, enough: int, in_order: bool | None, most_steps: int
) -> Optimum | None:
    if not of_whole_passes(problem) or (problem.overlaps and problem.walks.scale):
        raise TooManyOrdersError("tasks, modes, or blocks of unequal micro-batches")
    if sum(len(problem.microbatches_of[s]) for s in range(problem.placement.stages)) > _MOST_PAIRS:
        raise TooManyOrdersError("too many passes")
    passes = PassesOf(problem, bool(problem.walks.queues) if in_order is None else in_order)
    numbers, parts = passes.numbers, _parts(problem)
    if limit is None:
        # One pass after the other, all lags between.
        limit = parts * int(numbers.ticks.clip(0).sum() + numbers.lag.sum() + numbers.block.clip(0).max())
    room = np.array([_ROOM if own is None else own for own in problem.room], np.int64)
    choices = np.full(3 * len(passes.pairs), -1)
    found = search(numbers, parts, room, objective is Objective.SPAN, limit, enough, most_steps, choices)
    if found == TOO_MANY:
        raise TooManyOrdersError("too many orders to try")
    return None if found == NOTHING else Optimum(Fraction(found, parts), Schedule(passes.orders(choices), "best"))
