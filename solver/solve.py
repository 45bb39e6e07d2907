"""One solve: bounds, published schedules, and CP-SAT between them until they meet or time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

from formulations.full_horizon import FullHorizon, TooLong
from heuristics.catalogue import HEURISTICS
from pipesched.amounts import amount
from pipesched.certificate import Certificate
from pipesched.errors import Disagreement
from pipesched.feasibility import why_infeasible
from pipesched.metrics import measure
from pipesched.problem import Objective, Problem
from pipesched.schedule import Schedule
from pipesched.solution import Candidate, Progress, Solution, Status, gap
from pipesched.timeline import Timeline
from pipesched.validator import validate
from solver.best_times import best_times
from solver.bounds.catalogue import certificates
from solver.candidates import candidate
from solver.cp_sat import improve
from solver.limits import Limits
from solver.list_schedule import list_schedules, sequential

Report = Callable[[Progress], None]

# Share of the time limit that goes into list schedules, which are only a start.
_HINT_SHARE = 0.2


def solve(
    problem: Problem, limits: Limits | None = None, report: Report | None = None, stop: Event | None = None
) -> Solution:
    """The best schedule found, and what is proved of it.

    `report` hears of every improvement; setting `stop` ends the search with what was found. ValueError for the
    objective `period` and for passes of several tasks, which this version does not solve.
    """
    search = _Search(problem, limits or Limits(), report or (lambda _: None), stop or Event())
    reason = why_infeasible(problem)
    if reason is not None:
        return search.infeasible(reason)
    search.hints()
    search.cp_sat()
    return search.solution()


def without_search(problem: Problem) -> Solution:
    """Bounds and published schedules alone."""
    search = _Search(problem, Limits(), lambda _: None, Event())
    reason = why_infeasible(problem)
    if reason is not None:
        return search.infeasible(reason)
    search.published()
    return search.solution()


class _Search:
    """The state of one solve."""

    def __init__(self, problem: Problem, limits: Limits, report: Report, stop: Event) -> None:
        if problem.objective is Objective.PERIOD:
            raise ValueError("this version solves for makespan or span")
        if problem.costs.parts:
            # Bounds and the exact model take a pass for one task on `compute`; of others they would prove too much.
            raise ValueError("this version solves problems whose passes are single tasks on the compute stream")
        self.problem, self.limits, self.report, self.stop = problem, limits, report, stop
        self.started = time.monotonic()
        self.certificates = certificates(problem, problem.objective)
        self.certificate: Certificate = self.certificates[0]
        self.lower_bound = self.certificate.value
        self.candidates: tuple[Candidate, ...] = ()
        self.best: Timeline | None = None
        self.value: int | None = None
        self.history: list[Progress] = []
        self.notes: list[str] = []
        self.doing = "bounds"

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def done(self) -> bool:
        """Whether nothing is left to search: proved within the gap asked for, or told to stop."""
        close = self.value is not None and gap(self.value, self.lower_bound) <= self.limits.gap
        return close or self.stop.is_set()

    def published(self) -> None:
        """The published schedules; the best that fits is the first incumbent. All of them, unless told to stop."""
        for heuristic in HEURISTICS:
            self.doing = heuristic.name
            self.tell()
            found = candidate(self.problem, heuristic)
            self.candidates += (found,)
            if found.fits and found.timeline is not None:
                self.offer(found.timeline)
            if self.stop.is_set():
                return

    def hints(self) -> None:
        """Published schedules, then list schedules while their share of the time lasts."""
        self.published()
        if not self.done():
            self.doing = "list schedules"
            if self.best is None:
                self.offer_order(sequential(self.problem))
            for schedule in list_schedules(self.problem):
                self.offer_order(schedule)
                if self.done() or self.seconds > _HINT_SHARE * self.limits.seconds:
                    break

    def cp_sat(self) -> None:
        """The exact model, started from the incumbent."""
        left = self.limits.seconds - self.seconds
        if self.done() or left <= 0 or self.best is None or self.value is None:
            return
        self.doing = "CP-SAT"
        self.tell()
        try:
            model = FullHorizon(self.problem, self.best, self.value, self.lower_bound)
        except TooLong as reason:
            self.notes.append(f"CP-SAT was not asked for a better schedule: {reason}")
            return
        outcome = improve(model, self.limits, left, self.stop, self.hear)
        self.hear(outcome.timeline, outcome.bound)

    def hear(self, timeline: Timeline | None, bound: int) -> None:
        """What CP-SAT reports, while it runs and at its end."""
        if timeline is not None:
            self.offer(timeline)
        self.raise_bound(bound)

    def offer_order(self, schedule: Schedule) -> None:
        self.offer(best_times(self.problem, schedule))

    def offer(self, timeline: Timeline) -> None:
        """Keep a timeline if it is better; one that is not valid or lies below the bound is a defect in this tool."""
        value = measure(timeline).value(self.problem.objective)
        if self.value is not None and value >= self.value:
            return
        violations = validate(timeline)
        if violations:
            raise Disagreement(f"{self.doing} gave a schedule that is not valid: {violations[0].text}")
        if value < self.lower_bound:
            raise Disagreement(f"{self.doing} found {value} ticks, below the bound of {self.lower_bound}")
        self.best, self.value = timeline, value
        self.tell()

    def raise_bound(self, bound: int) -> None:
        """A bound that CP-SAT proved becomes the certificate where it beats those with an argument in words."""
        if bound <= self.lower_bound:
            return
        if self.value is not None and bound > self.value:
            raise Disagreement(f"CP-SAT claims a bound of {bound} ticks above the schedule of {self.value}")
        self.lower_bound = bound
        strongest = self.certificates[0]
        text = (
            f"CP-SAT searched the exact model to the end of every branch below {amount(self.problem, bound)} and found "
            f"no schedule there. The strongest argument in words gives {amount(self.problem, strongest.value)}: "
            f"{strongest.text}"
        )
        self.certificate = Certificate("exhaustive search", bound, text)
        self.tell()

    def tell(self) -> None:
        moment = Progress(self.seconds, self.value, self.lower_bound, self.doing)
        last = self.history[-1] if self.history else None
        if last is None or (last.value, last.lower_bound) != (moment.value, moment.lower_bound):
            self.history.append(moment)
        self.report(moment)

    def infeasible(self, reason: str) -> Solution:
        certificate = self.certificate
        return Solution(
            self.problem, Status.INFEASIBLE, self.lower_bound, certificate, reason=reason, wall_seconds=self.seconds
        )

    def solution(self) -> Solution:
        """The result so far."""
        best, status = self.best, Status.UNKNOWN
        if best is not None:
            status = Status.OPTIMAL if self.value == self.lower_bound else Status.FEASIBLE
        return Solution(
            problem=self.problem,
            status=status,
            lower_bound=self.lower_bound,
            certificate=self.certificate,
            timeline=best,
            metrics=measure(best) if best is not None else None,
            candidates=self.candidates,
            history=tuple(self.history),
            wall_seconds=self.seconds,
            interrupted=self.stop.is_set(),
            notes=tuple(self.notes),
        )
