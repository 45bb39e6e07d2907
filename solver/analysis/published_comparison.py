"""Comparison of every published schedule with the best one found."""

from __future__ import annotations

from collections.abc import Sequence

from heuristics.catalogue import HEURISTICS
from pipesched.problem.problem import Problem
from pipesched.results.solution import Candidate
from solver.construction.published import candidate
from solver.limits import Limits
from solver.solve import solve

OURS = "pipesched"


def compare(
    problem: Problem, limits: Limits | None = None, schedules: Sequence[str] | None = None
) -> tuple[Candidate, ...]:
    """The published schedules (all, or those named), best first, and last the best one found, named `pipesched`.

    Those that break the memory limit come after those that fit, and those that do not apply, with the reason, after
    both. `BadInput` for a name that no schedule has.
    """
    wanted = HEURISTICS.names() if schedules is None else [HEURISTICS[name].name for name in schedules]
    solution = solve(problem, limits)
    known = {one.name: one for one in solution.candidates}
    # For the period the solution's problem has finer ticks.
    rows = [known[name] if name in known else candidate(solution.problem, HEURISTICS[name]) for name in wanted]
    goal = solution.problem.objective

    def place(one: Candidate) -> tuple[bool, bool, int]:
        return one.metrics is None, not one.fits, 0 if one.metrics is None else one.metrics.value(goal)

    rows.sort(key=place)
    if solution.metrics is not None:
        rows.append(Candidate(OURS, solution.timeline, solution.metrics, True))
    return tuple(rows)
