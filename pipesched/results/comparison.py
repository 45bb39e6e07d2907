"""Published schedules compared with the best schedule found, as `compare` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.candidate import Candidate, best_fitting, ranked
from pipesched.results.solution import Solution
from pipesched.results.tabular import Tabular

OURS = "pipesched"  # the name of the schedule that the solve found


def with_solution(solution: Solution) -> list[Candidate]:
    """Return the published schedules, best first, followed by the schedule found if there is one.

    Those that do not fit or apply are included.
    """
    found = ranked(solution.candidates, solution.problem.objective)
    if solution.metrics is not None:
        found.append(Candidate(OURS, solution.timeline, solution.metrics, True))
    return found


def comparison_document(problem: Problem, candidates: Sequence[Candidate], lower_bound: Ticks) -> dict[str, object]:
    """Return the object of `compare --json`, in the file's units.

    It has `name`, `objective`, `rows`, the `Candidate.record` of each of `candidates` in their order, and
    `lower_bound`. The argument `lower_bound` is in ticks of `problem`.
    """
    return {
        "name": problem.name,
        "objective": problem.objective.name,
        "rows": [candidate.record(problem, lower_bound) for candidate in candidates],
        "lower_bound": problem.in_units(lower_bound),
    }


class Comparison(tuple[Candidate, ...], Tabular):
    """The candidates that are compared, in order, and the solution that they are compared with."""

    solution: Solution

    def __new__(cls, candidates: Iterable[Candidate], solution: Solution) -> Comparison:
        made = super().__new__(cls, candidates)
        made.solution = solution
        return made

    def __getnewargs__(self) -> tuple[tuple[Candidate, ...], Solution]:
        return tuple(self), self.solution

    __repr__, _repr_html_ = Tabular.__repr__, Tabular._repr_html_

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each schedule, in the order of the comparison, as in `compare --json`."""
        return [one.record(self.solution.problem, self.solution.lower_bound_ticks) for one in self]

    def summary(self) -> str:
        published = best_fitting((one for one in self if one.name != OURS), self.solution.problem)
        best = "no published one fits" if published is None else f"best published {published.name}"
        return f"{self.solution.summary()}; {best}"
