"""Relaxations of drawn problems: no optimum of a poorer problem, with what is added back, is above the problem's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from benchmarks.matrix.commands_of import SECONDS
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.relaxation import Relaxation, RelaxedProblem
from pipesched.problem.relaxed.relaxations import RELAXATIONS, with_partners
from pipesched.results.solution import Solution, Status
from solver.limits import Limits
from solver.solve import solve


def poorer_problems(problem: Problem, relaxations: Sequence[Relaxation] = RELAXATIONS) -> Iterator[RelaxedProblem]:
    """The problem after one relaxation, two, ... in the order of the table; each where its feature is there.

    Last, that with the memory of partners in place of the least of each activation.
    """
    found = RelaxedProblem(problem)
    for relaxation in relaxations:
        further = found.without(relaxation)
        if further is not found:
            yield further
        found = further
    shared = with_partners(problem)
    if shared is not None:
        yield shared


def too_high(poorer: RelaxedProblem, solution: Solution) -> Iterator[str]:
    """A fault if what is proved of the poorer problem is above the optimum of the problem, which the solution is.

    The optimum of the poorer problem is that of a search that proves it; another one proves nothing.
    """
    problem = solution.problem
    if solution.status is not Status.OPTIMAL or solution.value_ticks is None or problem.objective.repeats:
        return
    names = " and ".join(step.relaxation.name for step in poorer.steps)
    found = solve(poorer.problem, Limits(seconds=SECONDS, workers=1))
    if found.status is Status.INFEASIBLE:
        yield f"wrong: nothing fits without {names}, where the problem takes {solution.value_ticks} ticks"
    if found.status is not Status.OPTIMAL or found.value_ticks is None:
        return
    least = (Fraction(found.value_ticks) + poorer.added_back) * poorer.problem.tick
    optimum = solution.value_ticks * problem.tick
    if least > optimum:
        yield f"wrong: without {names} {float(least)} at least, with {poorer.added_back} ticks added back, where " \
              f"the problem takes {float(optimum)}"  # fmt: skip
