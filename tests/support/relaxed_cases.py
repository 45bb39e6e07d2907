"""Tiny problems of all pairs of features of the problem file, and a search for relaxations that raise an optimum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from math import inf
from random import Random
from typing import NamedTuple

from benchmarks.matrix.case_run import read
from benchmarks.matrix.draw import problem_case, text_of
from benchmarks.matrix.exact.model import TooLargeError
from benchmarks.matrix.exact.model import optimum as exact_optimum
from benchmarks.matrix.problem_switches import BY_NAME
from benchmarks.matrix.switch import together
from pipesched.errors import BadInput
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.relaxed.relaxation import Relaxation, RelaxedProblem
from tests.support.exhaustive.optimum import least as least_of_orders
from tests.support.task_brute_force import TooManyOrdersError

# Orders, and waits, that are tried at most for one optimum.
_ORDERS, _WAITS = 300, 4
# The optimum of a problem without any schedule.
NOTHING_FITS = inf
Value = Fraction | float


def drawn(seed: int, most: int | None = None) -> Iterator[tuple[tuple[str, ...], Problem]]:
    """Yield (names of features, problem) for single features and all pairs that go together, in a random order."""
    names = [own for size in (1, 2) for own in together([*BY_NAME.values()], size)]
    Random(seed).shuffle(names)
    for own in names[:most]:
        found = _problem(own, seed)
        if found is not None:
            yield own, found


@cache
def _problem(names: tuple[str, ...], seed: int) -> Problem | None:
    try:
        return read(text_of(problem_case(names, seed).document))
    except BadInput:
        return None


@cache
def richest(names: tuple[str, ...], seed: int) -> Value | None:
    """Return the optimum of the drawn document in its unit of time, by an exact model that does not use the task
    network.

    `NOTHING_FITS` if there is no schedule, None if it is not known.
    """
    try:
        most = exact_optimum(problem_case(names, seed).plain, 2.0).most
    except TooLargeError:
        return None
    return NOTHING_FITS if most is None else most


@cache
def least(problem: Problem) -> Value | None:
    """Return the optimum by trying every order, in the unit of time; None where there are too many orders.

    `NOTHING_FITS` if there is no schedule.
    """
    try:
        found = least_of_orders(problem, problem.objective, _WAITS, _ORDERS)
    except TooManyOrdersError:
        return None
    return NOTHING_FITS if found is None else found * problem.tick


class Drawn(NamedTuple):
    """A problem, the names of its features, and a function for its optimum in the unit of time, None where not
    known."""

    names: tuple[str, ...]
    problem: Problem
    optimum: Callable[[], Value | None]


def of_features(seed: int) -> Iterator[Drawn]:
    """Yield the problems of `drawn` but those of the objective period, and those whose numbers are rounded on
    reading."""
    for names, problem in drawn(seed):
        if problem.objective != Objective.PERIOD and "17 digits" not in names:
            yield Drawn(names, problem, partial(richest, names, seed))


def raised(
    relaxations: Sequence[Relaxation], cases: Iterable[Drawn], enough: int, only: Relaxation | None = None
) -> Iterator[tuple[Relaxation, tuple[str, ...], bool]]:
    """Yield for each relaxation applied to a problem: it, the features, and True if it raises the optimum, an error.

    Only problems are compared of which both optima are known, at most `enough` for each relaxation, or for the `only`
    one.
    """
    counted = Counter[str]()
    for names, problem, optimum in cases:
        if all(counted[one.name] >= enough for one in ([only] if only else relaxations)):
            return
        richer, before = RelaxedProblem(problem), None
        for relaxation in relaxations:
            poorer = richer.without(relaxation)
            if poorer is richer:
                continue
            if counted[relaxation.name] < enough and only in (None, relaxation):
                known = before if before is not None else least(richer.problem) if richer.steps else optimum()
                before = None if known is None else least(poorer.problem)
                if known is not None and before is not None:
                    counted[relaxation.name] += 1
                    back = (poorer.added_back - richer.added_back) * problem.tick
                    yield relaxation, names, before + back > known
            else:
                before = None
            richer = poorer
