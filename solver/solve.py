"""One solve: bounds from below and schedules from above, part by part, until they meet or time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from threading import Event

from formulations.full_horizon import FullHorizon, TooLong
from formulations.model import MOST_LITERALS
from formulations.order import literal_count
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
from solver.neighbourhoods import OrderSearch
from solver.parts import Parts
from solver.periodic_problem import best_period, best_unrolled
from solver.relaxed import relaxed_bounds
from solver.solve_period import solve_period

Report = Callable[[Progress], None]

# Shares of the time limit: list schedules are only a start, and the relaxation needs long only where it gains little.
_LIST_SHARE, _RELAXATION_SHARE = 0.2, 0.15
# Up to so many order literals CP-SAT is asked at once, since it is likely to prove the optimum in seconds.
_FEW_LITERALS = 2_500
# What CP-SAT gets of the time: first where literals are few, and after the neighbourhoods.
_FIRST_SHARE, _LAST_SHARE = 0.3, 0.35
# Problems of so many micro-batches a device are long, and this share of the time goes into their pattern.
_LONG, _PERIODIC_SHARE = 4, 0.15
# Of this many passes each schedule takes a second, so that none is tried any more once the optimum is proved.
_MANY_PASSES = 20_000
# How many starts besides the best the neighbourhoods go on from.
_OTHER_STARTS = 6


def solve(
    problem: Problem,
    limits: Limits | None = None,
    report: Report | None = None,
    stop: Event | None = None,
    parts: Parts | None = None,
) -> Solution:
    """The best schedule found, and what is proved of it.

    `report` hears of every improvement; setting `stop` ends the search with what was found; `parts` leaves parts of
    the engine out, to measure them. ValueError for passes of several tasks, which this version does not solve.
    """
    report, stop, limits = report or (lambda _: None), stop or Event(), limits or Limits()
    if problem.objective is Objective.PERIOD:
        return solve_period(problem, limits, report, stop)
    search = _Search(problem, limits, report, stop, parts or Parts())
    reason = why_infeasible(problem)
    if reason is not None:
        return search.infeasible(reason)
    for step in (
        search.published,
        search.any_schedule,
        search.relaxation,
        search.lists,
        search.periodic,
        search.first_cp_sat,
        search.neighbourhoods,
        search.last_cp_sat,
    ):
        if not search.done():
            step()
    return search.solution()


def without_search(problem: Problem) -> Solution:
    """Bounds and published schedules alone."""
    if problem.objective is Objective.PERIOD:
        return solve_period(problem, search=False)
    search = _Search(problem, Limits(), lambda _: None, Event(), Parts())
    reason = why_infeasible(problem)
    if reason is not None:
        return search.infeasible(reason)
    search.published()
    return search.solution()


class _Search:
    """The state of one solve."""

    def __init__(self, problem: Problem, limits: Limits, report: Report, stop: Event, parts: Parts) -> None:
        if problem.costs.parts:
            # Bounds and the exact model take a pass for one task on `compute`; of others they would prove too much.
            raise ValueError("this version solves problems whose passes are single tasks on the compute stream")
        self.problem, self.limits, self.report, self.stop, self.parts = problem, limits, report, stop, parts
        self.started = time.monotonic()
        found = certificates(problem, problem.objective)
        self.certificates = found if parts.certificates else [one for one in found if one.kind == "load"]
        self.certificate: Certificate = self.certificates[0]
        self.lower_bound = self.certificate.value
        self.candidates: tuple[Candidate, ...] = ()
        self.best: Timeline | None = None
        self.value: int | None = None
        self.starts: dict[int, Timeline] = {}  # one timeline for each value met before the neighbourhoods
        self.history: list[Progress] = []
        self.notes: list[str] = []
        self.doing = "bounds"

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def passes(self) -> int:
        """About how many passes a schedule has."""
        return 3 * sum(map(len, self.problem.microbatches_of))

    def done(self) -> bool:
        """Whether nothing is left to search: proved within the gap asked for, the target settled, or told to stop."""
        close = self.value is not None and gap(self.value, self.lower_bound) <= self.limits.gap
        return close or self.target_settled() or self.stop.is_set()

    def target_settled(self) -> bool:
        """Whether it is known if the target can be met."""
        target = self.limits.target
        met = target is not None and self.value is not None and self.value <= target
        return met or (target is not None and self.lower_bound > target)

    def left(self, share: float = 1.0) -> float:
        """The seconds that are left of the time limit, and no more than this share of it."""
        return min(self.limits.seconds * share, self.limits.seconds - self.seconds)

    def published(self) -> None:
        """The published schedules; the best that fits is the first incumbent. All of them, unless told to stop."""
        # The one that searches under the problem's own memory is the most likely to be optimal.
        for heuristic in sorted(HEURISTICS, key=lambda heuristic: heuristic.name != "zb"):
            self.doing = heuristic.name
            self.tell()
            found = candidate(self.problem, heuristic)
            self.candidates += (found,)
            if found.fits and found.timeline is not None:
                self.offer(found.timeline)
            if self.stop.is_set() or (self.done() and self.passes > _MANY_PASSES):
                return

    def any_schedule(self) -> None:
        """Where no published schedule fits, one that always does."""
        if self.best is None:
            self.doing = "one micro-batch after the other"
            self.offer_order(sequential(self.problem))

    def lists(self) -> None:
        """List schedules while their share of the time lasts."""
        self.doing = "list schedules"
        for schedule in list_schedules(self.problem):
            self.offer_order(schedule)
            if self.done() or self.seconds > _LIST_SHARE * self.limits.seconds:
                return

    def periodic(self) -> None:
        """The best pattern found, unrolled: what long problems rest on, since its search does not grow with them."""
        if not self.parts.periodic or self.problem.microbatches < _LONG * self.problem.devices:
            return
        self.doing = "periodic"
        self.tell()
        limits = replace(self.limits, seconds=self.left(_PERIODIC_SHARE), target=None)
        pattern = best_period(self.problem, limits, self.stop).pattern
        if pattern is not None:
            self.offer_order(best_unrolled(pattern, self.problem).schedule)

    def relaxation(self) -> None:
        """The linear relaxation, of one device after the other."""
        if not self.parts.relaxation or self.value is None:
            return
        self.doing = "linear relaxation"
        self.tell()
        for certificate in relaxed_bounds(self.problem, self.value, self.left(_RELAXATION_SHARE), self.stop):
            self.certificates = sorted([*self.certificates, certificate], key=lambda one: -one.value)
            self.claim(certificate)
            if self.done():
                return

    def first_cp_sat(self) -> None:
        """CP-SAT on the exact model where that is small."""
        if literal_count(self.problem, range(self.problem.devices)) <= _FEW_LITERALS:
            self.cp_sat(self.left(_FIRST_SHARE))

    def neighbourhoods(self) -> None:
        """Annealing from the best schedule and a few others; CP-SAT's share is left over where it can do something."""
        left = self.left()
        if literal_count(self.problem, range(self.problem.devices)) <= MOST_LITERALS:
            left -= self.limits.seconds * _LAST_SHARE
        if self.parts.neighbourhoods and left > 0 and self.best is not None:
            self.doing = "neighbourhoods"
            self.tell()
            others = [self.starts[value] for value in sorted(self.starts)[1 : 1 + _OTHER_STARTS]]
            search = OrderSearch(self.best, others, self.limits, self.done)
            search.run(left, self.offer_order)

    def last_cp_sat(self) -> None:
        """CP-SAT on the exact model for what is left of the time."""
        self.cp_sat(self.left())

    def cp_sat(self, seconds: float) -> None:
        """The exact model, started from the incumbent."""
        if seconds <= 0 or self.best is None or self.value is None:
            return
        self.doing = "CP-SAT"
        self.tell()
        literals = MOST_LITERALS if self.parts.literals else -1
        try:
            model = FullHorizon(self.problem, self.best, self.value, self.lower_bound, most_literals=literals)
        except TooLong as reason:
            self.notes.append(f"CP-SAT was not asked for a better schedule: {reason}")
            return
        outcome = improve(model, self.limits, seconds, self.stop, self.hear)
        self.hear(outcome.timeline, outcome.bound)

    def hear(self, timeline: Timeline | None, bound: int) -> None:
        """What CP-SAT reports, while it runs and at its end."""
        if timeline is not None:
            self.offer(timeline)
        self.raise_bound(bound)

    def offer_order(self, schedule: Schedule) -> Timeline | None:
        """Times for an order, kept if they are better; the best timeline if this one is as good."""
        timeline = best_times(self.problem, schedule)
        value = measure(timeline).value(self.problem.objective)
        self.starts.setdefault(value, timeline)
        self.offer(timeline)
        return timeline if value == self.value else None

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
        strongest = self.certificates[0]
        text = (
            f"CP-SAT searched the exact model to the end of every branch below {amount(self.problem, bound)} and found "
            f"no schedule there. The strongest argument in words gives {amount(self.problem, strongest.value)}: "
            f"{strongest.text}"
        )
        self.claim(Certificate("exhaustive search", bound, text))

    def claim(self, certificate: Certificate) -> None:
        """Keep a certificate that beats those before it."""
        if certificate.value > self.lower_bound:
            self.lower_bound, self.certificate = certificate.value, certificate
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
