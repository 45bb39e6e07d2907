"""Tiny random problems with unequal micro-batches, and what each part of the tool claims of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil
from random import Random

from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.bound_problems import draw
from benchmarks.proofs.branch import FACTORS, scaled
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import in_ticks_of
from pipesched.schedule.rescale import value_of
from pipesched.validation.validator import validate
from solver.bounds.analytic.catalogue import certificates
from solver.construction.list_scheduling import list_schedules, sequential
from solver.construction.timing import best_times
from solver.limits import Limits
from solver.solve import solve
from tests.support.exhaustive.optimum import least_value
from tests.support.task_brute_force import TooManyOrdersError

# CP-SAT's units of work for a solve; every how many problems there is one.
_WORK, _SOLVED_EVERY = 0.1, 10


def draw_unequal(random: Random) -> Problem:
    """A problem as one drawn for some branch of a bound, with factors; the order of micro-batches is fixed or free."""
    while True:
        problem = draw(random, replace(random.choice(BRANCHES).likely, blocks=0.0))
        few = random.sample(FACTORS, random.randint(2, 3))
        scale = [random.choice(few) for _ in range(problem.microbatches)]
        fixed = random.random() < 0.4
        if set(scale) != {1} and not problem.overlaps:
            return scaled(problem, scale, fixed)


def optimum_of(problem: Problem) -> Fraction | None:
    """The least value over all orders, in ticks; None where there are too many."""
    try:
        return least_value(problem, problem.objective, _known(problem))
    except TooManyOrdersError:
        return None


def _known(problem: Problem) -> int:
    """The value of a schedule, in ticks: the best of one micro-batch after the other and of list schedules."""
    timelines = [best_times(problem, order) for order in (sequential(problem), *list_schedules(problem))]
    return min(ceil(value_of(problem, timeline)) for timeline in timelines if not validate(timeline))


def bounds(problem: Problem) -> Iterator[tuple[str, Fraction]]:
    """Every analytic bound, by its kind, in ticks."""
    for one in certificates(problem, problem.objective):
        yield one.kind, Fraction(one.value_ticks)


def solved(problem: Problem, deterministic: float, seed: int) -> tuple[Fraction, Fraction]:
    """The lower bound and the value of a solve of so much work, in ticks."""
    found = solve(problem, Limits(workers=1, deterministic=deterministic, seed=seed))
    assert found.value_ticks is not None
    ends = found.lower_bound_ticks, found.value_ticks
    low, high = (Fraction(in_ticks_of(problem, ticks, found.problem)) for ticks in ends)
    return low, high


def orders_and_modes(number: int) -> tuple[str, ...]:
    """All analytic bounds, and of some problems a whole solve, against every order of fused and split backwards."""
    problem = draw_unequal(Random(number))
    best = optimum_of(problem)
    if best is None:
        return ("too many orders",)
    wrong = [(kind, value) for kind, value in bounds(problem) if value > best]
    assert not wrong, f"{wrong} above {best}"
    if number % _SOLVED_EVERY == 0:
        low, high = solved(problem, _WORK, number)
        assert low <= best <= high, f"a solve claims {low} to {high}, the optimum is {best}"
    return ("problems",)
