"""Solve of one cell of a sweep: search, comparison with published schedules, and the outcome to be stored.

It runs in any process.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Event
from typing import Any

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.problem.problem import Problem
from pipesched.results.gap import gap
from pipesched.results.solution import Progress, Solution
from pipesched.sweeps.cells import problem_of
from pipesched.sweeps.outcome import Effort, Outcome, PublishedResult
from pipesched.sweeps.packed import unpack
from solver.analysis.published_comparison import all_tried
from solver.limits import Limits
from solver.planning.plan import plan
from solver.planning.progress import PlanProgress
from solver.solve import solve
from solver.sweeps.outcomes import of_plan, of_solution
from solver.sweeps.plan_start import plan_start, with_published


@dataclass(frozen=True)
class Task:
    """A cell to be solved, in the form in which it is sent to another process.

    `start` is the known outcome of this cell or one with no more memory, whose schedule is also valid in this cell.
    `floor` is a lower bound in the file's unit, proved with no less memory: the search ends where a schedule meets it.
    Both are None if there is none. `key` and `document` are the cell's; `name` is the problem's if the document has
    none.
    """

    key: str
    document: Mapping[str, Any]
    name: str
    limits: Limits
    start: Outcome | None = None
    floor: Fraction | None = None


def solve_cell(task: Task, stop: Event | None = None) -> Outcome:
    """Return the outcome of a cell, a problem or a plan problem, within its limits.

    Setting `stop`, an event of this cell alone, ends the search; the outcome is then not `finished`. A search that ends
    since it reached `task.floor` is. Raises `BadInput` if the document is no valid problem.
    """
    began, limits = time.monotonic(), task.limits
    problem = problem_of(task.document, task.name)
    met = MetBound(task.floor, float(limits.gap), stop or Event())
    effort = Effort(limits.seconds, limits.workers, limits.seed, float(limits.gap))
    if isinstance(problem, Problem):
        solution = _solution(problem, task, met)
        if not met.interrupted:
            solution = all_tried(solution, HEURISTICS.names(), limits)
        found = of_solution(solution, effort)
    else:

        def moved(moment: PlanProgress) -> None:
            met.see(moment.value)

        best = plan(problem, limits, moved, met.stop, plan_start(problem, task.start))
        known: tuple[PublishedResult, ...] = ()
        if not met.interrupted:
            best, known = with_published(best, problem, limits, Event() if met.stop.is_set() else met.stop)
        found = replace(of_plan(best, effort), published=known)
    return replace(found, wall_seconds=time.monotonic() - began, finished=not met.interrupted)


def _solution(problem: Problem, task: Task, met: MetBound) -> Solution:
    """Solve the cell's problem, from the schedule of the task's start if there is one and it is valid here."""

    def report(moment: Progress) -> None:
        met.see(moment.value)

    start = None if task.start is None or task.start.schedule is None else unpack(task.start.schedule).timeline
    if start is not None:
        try:
            return solve(problem, task.limits, report, met.stop, start)
        except BadInput:
            pass  # not one of this problem, or one for makespan and span alone; what else is wrong is found below
    return solve(problem, task.limits, report, met.stop)


class MetBound:
    """Watch on the values of a search: sets its event `stop` when a value reaches the known bound `floor`.

    A value reaches the bound if the gap is at most `allowed`. `interrupted` is True if the event was set for another
    reason.
    """

    def __init__(self, floor: Fraction | None, allowed: float, stop: Event) -> None:
        self._floor, self._allowed = floor, allowed
        self.stop = stop
        self._met = False

    @property
    def interrupted(self) -> bool:
        return self.stop.is_set() and not self._met

    def see(self, value: Fraction | None) -> None:
        """Set `stop` if `value`, the best so far in the file's unit (None: none yet), is near enough to the bound."""
        if self._floor is None or value is None or self.stop.is_set():
            return
        if gap(value, self._floor) <= self._allowed:
            self._met = True
            self.stop.set()
