"""One solve: bounds from below and schedules from above, part by part, until they meet or time is up."""

from __future__ import annotations

import time
from dataclasses import replace
from math import inf
from threading import Event

from formulations.full_horizon import FullHorizon, TooLong
from formulations.model import MOST_LITERALS
from formulations.order import literal_count
from heuristics.catalogue import HEURISTICS
from pipesched.feasibility import why_infeasible
from pipesched.metrics import measure
from pipesched.problem import Objective, Problem
from pipesched.schedule import Schedule
from pipesched.solution import Progress, Solution
from pipesched.timeline import Timeline
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
from solver.standing import Report, Standing
from solver.stretching import best_stretch, shortened

# Shares of the time limit: list schedules are only a start, and the relaxation needs long only where it gains little.
_LIST_SHARE, _RELAXATION_SHARE = 0.2, 0.15
# Published schedules are to be compared with, and no more are tried after this share of the time.
_PUBLISHED_SHARE = 0.5
# Up to so many order literals CP-SAT is asked at once, since it is likely to prove the optimum in seconds.
_FEW_LITERALS = 2_500
# What CP-SAT gets of the time: first where literals are few, and after the neighbourhoods.
_FIRST_SHARE, _LAST_SHARE = 0.3, 0.35
# Problems of so many micro-batches a device are long, and this share of the time goes into their pattern.
_LONG, _PERIODIC_SHARE = 4, 0.15
# Of this many passes each schedule takes a part of a second, so that shorter problems are preferred where they will do,
# and no schedule is tried any more once the optimum is proved.
_MANY_PASSES = 20_000
# What stretching a schedule takes with its times and its judgement, amply.
_STRETCH_SECONDS_A_PASS = 2e-5
# What stating the exact model takes, about.
_SECONDS_A_PASS = 0.001
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
    search.run()
    return search.solution()


def without_search(problem: Problem) -> Solution:
    """Bounds and published schedules alone."""
    if problem.objective is Objective.PERIOD:
        return solve_period(problem, search=False)
    search = _Search(problem, Limits(seconds=inf), lambda _: None, Event(), Parts())
    search.whole_table = True
    reason = why_infeasible(problem)
    if reason is not None:
        return search.infeasible(reason)
    search.published()
    return search.solution()


class _Search(Standing):
    """The steps of one solve."""

    def __init__(self, problem: Problem, limits: Limits, report: Report, stop: Event, parts: Parts) -> None:
        if problem.costs.parts:
            # Bounds and the exact model take a pass for one task on `compute`; of others they would prove too much.
            raise ValueError("this version solves problems whose passes are single tasks on the compute stream")
        started = time.monotonic()
        bounds = certificates(problem, problem.objective)
        if not parts.certificates:
            bounds = [one for one in bounds if one.kind == "load"]
        super().__init__(problem, limits, report, stop, bounds, started)
        self.parts = parts
        self.starts: dict[int, Timeline] = {}  # one timeline for each value of a list or periodic schedule
        # Whether published schedules are simulated for the user to compare with even once the optimum is proved.
        self.whole_table = self.passes <= _MANY_PASSES

    def run(self) -> None:
        """Every step until done; a long problem that a shorter one gave a schedule to needs no other."""
        self.stretched()
        if self.best is not None:
            return
        for step in (
            self.published,
            self.any_schedule,
            self.relaxation,
            self.periodic,
            self.lists,
            self.first_cp_sat,
            self.neighbourhoods,
            self.last_cp_sat,
        ):
            if not self.done() and (self.best is None or self.left() > 0):
                step()

    def stretched(self) -> None:
        """A long problem rests on a shorter one, whose schedule is repeated in its middle: what improves the one
        improves every repetition, and the search does not grow with the number of micro-batches."""
        short = shortened(self.problem)
        if self.passes > _MANY_PASSES and short is not None:
            seconds = max(self.left() / 2, self.left() - self.passes * _STRETCH_SECONDS_A_PASS)
            _Shorter(self, short, replace(self.limits, seconds=seconds, target=None)).run()
            if self.best is not None:
                self.notes.append(
                    f"this is a schedule of {short.microbatches} micro-batches with its middle repeated; published "
                    "schedules were tried on those, and not on all"
                )

    def published(self) -> None:
        """The published schedules; the best that fits is the first incumbent. All of them, if time allows."""
        # The one that searches under the problem's own memory is the most likely to be optimal.
        for heuristic in sorted(HEURISTICS, key=lambda heuristic: heuristic.name != "zb"):
            self.doing = heuristic.name
            self.tell()
            found = candidate(self.problem, heuristic)
            self.candidates += (found,)
            if found.fits and found.timeline is not None:
                self.offer(found.timeline)
            late = self.seconds > _PUBLISHED_SHARE * self.limits.seconds
            if self.stop.is_set() or late or (self.done() and not self.whole_table):
                return

    def any_schedule(self) -> None:
        """Where no published schedule fits, one that always does."""
        if self.best is None:
            self.doing = "one micro-batch after the other"
            self.offer_order(sequential(self.problem))

    def lists(self) -> None:
        """List schedules while their share of the time lasts; none of a long problem that has a pattern already."""
        if self.starts and self.passes > _MANY_PASSES:
            return
        self.doing = "list schedules"
        for schedule in list_schedules(self.problem):
            self.start_from(schedule)
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
            self.start_from(best_unrolled(pattern, self.problem).schedule)

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
            search = OrderSearch(self.best, self.others(), self.limits, self.done)
            search.run(left, self.offer_order)

    def last_cp_sat(self) -> None:
        """CP-SAT on the exact model for what is left of the time, if that is more than stating the model takes."""
        if self.left() > self.passes * _SECONDS_A_PASS:
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
        # Stating a large model takes seconds of its own.
        outcome = improve(model, self.limits, max(0.1, min(seconds, self.left())), self.stop, self.hear)
        self.hear(outcome.timeline, outcome.bound)

    def others(self) -> list[Timeline]:
        """The best of the schedules to start from."""
        return [self.starts[value] for value in sorted(self.starts)[:_OTHER_STARTS]]

    def start_from(self, schedule: Schedule) -> None:
        """A schedule that the neighbourhoods may go on from even where it is not the best."""
        timeline = best_times(self.problem, schedule)
        self.starts.setdefault(measure(timeline).value(self.problem.objective), timeline)
        self.offer(timeline)


class _Shorter(_Search):
    """The search for a shorter problem on behalf of the whole one, to which it hands over what can be stretched."""

    def __init__(self, whole: _Search, problem: Problem, limits: Limits) -> None:
        self.whole = whole
        self.stretched_value: int | None = None
        self.not_before = 0.0
        # What is proved of the shorter problem proves nothing of the whole one.
        super().__init__(problem, limits, self.hear_moment, whole.stop, replace(whole.parts, relaxation=False))
        self.whole_table = False

    def run(self) -> None:
        super().run()
        if not self.whole.done() or self.stop.is_set():
            self.hand_over()

    def done(self) -> bool:
        return super().done() or self.whole.done()

    def hear_moment(self, moment: Progress) -> None:
        """Improvements come often and stretching takes time, so that each waits until the time has doubled."""
        self.whole.doing = f"{self.problem.microbatches} micro-batches: {moment.doing}"
        self.whole.tell()
        if self.best is not None and self.seconds >= self.not_before:
            self.hand_over()
            self.not_before = 2 * self.seconds

    def hand_over(self) -> None:
        """What gives most when stretched: the best schedule may have nothing that it repeats any more."""
        timelines = [*([] if self.best is None else [self.best]), *self.others()]
        stretch = best_stretch(timelines)
        if stretch is not None and (self.stretched_value is None or stretch.value < self.stretched_value):
            self.stretched_value = stretch.value
            self.whole.offer_order(stretch.over(self.whole.problem))
