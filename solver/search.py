"""The steps of one solve, each with its share of the time: bounds from below and schedules from above."""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Event

from formulations.exact_model import TooLong
from formulations.full_horizon import FullHorizon
from formulations.model import MOST_LITERALS
from formulations.order import literal_count
from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.errors import Deadlock
from pipesched.metrics import measure
from pipesched.problem import Problem
from pipesched.schedule import Schedule
from pipesched.solution import gap
from pipesched.timeline import Timeline
from solver.best_times import best_times
from solver.bounds.catalogue import certificates
from solver.candidates import candidate
from solver.closing_in import anneal, anneal_and_prove, can_run_beside, prove
from solver.cp_sat import improve
from solver.limits import Limits
from solver.list_schedule import list_schedules, sequential
from solver.parts import Parts
from solver.periodic_problem import best_period, best_unrolled
from solver.ramps import better_ramps
from solver.relaxed import relaxed_bounds
from solver.standing import Report, Standing

# Shares of the time limit: list schedules are only a start, and the relaxation needs long only where it gains little.
_LIST_SHARE, _RELAXATION_SHARE = 0.2, 0.15
# Published schedules are to be compared with, and no more are tried after this share of the time.
_PUBLISHED_SHARE = 0.5
# Up to so many order literals CP-SAT is asked at once, since it is likely to prove the optimum in seconds.
_FEW_LITERALS = 2_500
# What CP-SAT gets of the time: first where literals are few, and after the neighbourhoods where they are not too many
# for it to find much.
_FIRST_SHARE, _LAST_SHARE, _MANY_LITERALS = 0.4, 0.35, 20_000
# Problems of so many micro-batches a device are long, and this share of the time goes into their pattern.
_LONG, _PERIODIC_SHARE = 4, 0.15
# And this each of its ramps.
_RAMP_SHARE = 0.08
# Of this many passes each schedule takes a part of a second, so that shorter problems are preferred where they will do,
# and no schedule is tried any more once the optimum is proved.
MANY_PASSES = 20_000
# What stating the exact model takes, about.
_SECONDS_A_PASS = 0.001
# The gap from which on annealing shares its workers.
_NEAR = 0.01
# How many starts besides the best the neighbourhoods go on from.
_OTHER_STARTS = 6


class Search(Standing):
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
        self.whole_table = self.passes <= MANY_PASSES

    def run(self) -> None:
        """Every step until done."""
        for step in (
            self.published,
            self.any_schedule,
            self.relaxation,
            self.periodic,
            self.lists,
            self.first_cp_sat,
            self.neighbourhoods,
            self.proof,
            self.last_cp_sat,
            self.rest,
        ):
            if not self.done() and (self.best is None or self.left() > 0):
                step()

    def published(self) -> None:
        """The published schedules; the best that fits is the first incumbent. All of them, if time allows."""
        for heuristic in sorted(HEURISTICS, key=_promise):
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
        if self.starts and self.passes > MANY_PASSES:
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
            try:
                unrolled = best_unrolled(pattern, self.problem)
            except Deadlock:
                # Passes of no length may stand in a pattern in an order that waits for itself where ramps begin.
                return
            self.start_from(unrolled.schedule)
            if not self.done():
                self.doing = "ramps"
                self.tell()
                self.start_from(better_ramps(unrolled, self.limits, self.left(_RAMP_SHARE), self.stop).schedule)

    def relaxation(self) -> None:
        """The linear relaxation of single devices."""
        if not self.parts.relaxation or self.value is None:
            return
        self.doing = "linear relaxation"
        self.tell()
        for certificate in relaxed_bounds(self.problem, self.value, self.left(_RELAXATION_SHARE), self.stop):
            self.argue(certificate)
            if self.done():
                return

    def first_cp_sat(self) -> None:
        """CP-SAT on the exact model where that is small."""
        if literal_count(self.problem, range(self.problem.devices)) <= _FEW_LITERALS:
            self.cp_sat(self.left(_FIRST_SHARE))

    def neighbourhoods(self) -> None:
        """Annealing from the best schedule and a few others.

        Far from the bound a worker looks for a better one meanwhile, if there is another; near it what is missing is
        more often the schedule. Where none does, a share of the time is left for that, or for CP-SAT where it can do
        something.
        """
        if not self.parts.neighbourhoods or self.value is None:
            return
        self.doing = "neighbourhoods"
        self.tell()
        far = self.proves and gap(self.value, self.lower_bound) > _NEAR
        if far and can_run_beside(self):
            anneal_and_prove(self, self.others())
            return
        few = literal_count(self.problem, range(self.problem.devices)) <= _MANY_LITERALS
        anneal(self, self.others(), self.left() - (self.limits.seconds * _LAST_SHARE if far or few else 0))

    @property
    def proves(self) -> bool:
        """Whether bounds are raised by prices and refuted values: not where plain or no bounds are asked for."""
        return self.parts.relaxation and self.parts.literals

    def proof(self) -> None:
        """Better bounds, where they were not looked for beside the neighbourhoods."""
        if self.proves:
            self.doing = "prices and refutation"
            self.tell()
            prove(self)

    def last_cp_sat(self) -> None:
        """CP-SAT on the exact model for what is left of the time, if that is more than stating the model takes."""
        if self.left() > self.passes * _SECONDS_A_PASS:
            self.cp_sat(self.left())

    def rest(self) -> None:
        """Annealing again, where the steps before were through early. Counted work has no time left over."""
        if self.parts.neighbourhoods and self.limits.deterministic is None:
            self.doing = "neighbourhoods"
            self.tell()
            anneal(self, self.others(), self.left(), again=True)

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


def _promise(heuristic: Heuristic) -> int:
    """First the one that searches under the problem's own memory, last those that improve another for seconds."""
    return 0 if heuristic.name == "zb" else 2 if heuristic.name.endswith("-cost-aware") else 1
