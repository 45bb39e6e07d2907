"""Comparison of every published schedule with the best one found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heuristics.catalogue import HEURISTICS
from pipesched.problem.problem import Problem
from pipesched.results.candidate import Candidate
from pipesched.results.comparison import OURS, with_solution
from pipesched.results.solution import Solution
from solver.construction.published import candidate
from solver.limits import Limits
from solver.solve import solve


def compare(
    problem: Problem, limits: Limits | None = None, schedules: Sequence[str] | None = None
) -> tuple[Candidate, ...]:
    """The published schedules (all, or those named), best first, and last the best one found, named `pipesched`.

    Those that break the memory limit come after those that fit, and those that do not apply, with the reason, after
    both. `BadInput` for a name that no schedule has.
    """
    wanted = HEURISTICS.names() if schedules is None else [HEURISTICS[name].name for name in schedules]
    solution = all_tried(solve(problem, limits), wanted)
    return tuple(one for one in with_solution(solution) if one.name in {*wanted, OURS})


def all_tried(solution: Solution, names: Sequence[str]) -> Solution:
    """With the schedules named that the search did not try: it tries no more than it has time and use for."""
    untried = sorted({*names} - {one.name for one in solution.candidates})
    # For the period the solution's problem has finer ticks.
    published = [candidate(solution.problem, HEURISTICS[name]) for name in untried]
    return replace(solution, candidates=(*solution.candidates, *published))
