"""Replanning of an iteration in progress: a first answer at once, then CP-SAT on all remaining tasks or on windows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, lcm
from threading import Event

from formulations.exact.exact_model import ExactModel
from formulations.jobs.gathers import grouped_at
from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_that_remain import jobs_that_remain
from formulations.jobs.placed_jobs import PlacedJobs
from formulations.jobs.quantities import JobId, TimeSteps
from formulations.variables.known_order import KnownOrder
from formulations.variables.literals import TooLong
from formulations.variables.operations import Operations
from pipesched.errors import Disagreement, left_out_note
from pipesched.problem.attainable_spans import Value, least_from, simplest
from pipesched.problem.passes import Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.problem.rescale import finer
from pipesched.problem.state import Ran, State
from pipesched.results.replanned import Replanned
from pipesched.results.solution import Status
from pipesched.schedule.schedule import Wait
from pipesched.validation.state_rules import validate_from_state
from solver.backends.cp_sat import Parameters, solve_model
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.replanning.first_orders import first_orders
from solver.tasks.placing import placed_at
from solver.tasks.window_search import WindowSearch


@dataclass(frozen=True)
@tunable
class ReplanParams:
    """Sizes and shares of time for CP-SAT's exact model of the remaining tasks and for windows of them."""

    most_jobs: int = tuned(5_000, "jobs of the exact model", 10, 10**6)
    most_literals: int = tuned(12_000, "order literals, beyond which nothing is refuted in a minute", 100, 10**6)
    first_share: float = tuned(0.2, "of the time, for the exact model before windows", 0, 1)
    patience: int = tuned(12, "windows without gain, before the exact model has the rest", 1, 1000)
    counted_windows: int = tuned(6, "windows, where work is counted", 1, 1000)
    most_parts: int = tuned(2520, "parts of a tick, of which all spans of ten devices are whole numbers", 1, 10**5)


_PARAMS = ReplanParams()


# Limit of steps that CP-SAT can add up without overflow.
MOST_STEPS = 2**50

Report = Callable[[Replanned], None]


def replan(
    problem: Problem, state: State, limits: Limits, report: Report = lambda _: None, stop: Event | None = None
) -> Replanned:
    """Return the best order found for the remaining tasks of an iteration in progress, whose past is `state`.

    `report` is called at every better one, the first time after list scheduling. Bounds are those of CP-SAT and of the
    remaining work; bounds of whole iterations do not know which tasks have begun. Orders start in whole ticks first; if
    a span may be a fraction of a tick, the best of them is then improved in finer ticks. Setting `stop` ends the
    search. If no task is left, the result is the past as it is. Raises ValueError for unequal micro-batches; an error
    in a part of the search ends that part and becomes a note.
    """
    search = _Search(problem, state, limits, report, stop or Event())
    if not search.jobs.jobs:
        search.keep_validated({}, ())
        return search.result()
    search.run()
    finer_found = None
    with search.defects_noted("finer ticks"):
        finer_found = search.in_finer_ticks()
    return finer_found or search.result()


@dataclass
class _Search:
    problem: Problem
    state: State
    limits: Limits
    report: Report
    stop: Event

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.limits.seconds
        self.jobs = jobs_that_remain(self.problem, self.state)
        self.bound: Value = least_value(self.problem, self.state, self.jobs)
        self.placed: PlacedJobs | None = None
        self.best: Replanned | None = None
        self._notes = list[str]()
        self._infeasible = (self.jobs.most_further_gathers or 0) < 0

    def run(self) -> None:
        if self._infeasible:
            return
        with self.defects_noted("list scheduling of what remains"):
            for starts in first_orders(self.jobs):
                placed = self._placed_at(starts)
                if placed is not None and (self.best is None or not self._done):
                    self._keep(placed)
        exact = False
        with self.defects_noted("the exact model of what remains"):
            exact = self._small
            if exact:
                self._exact(_PARAMS.first_share if self.placed is not None else 1.0)
        with self.defects_noted("windows of what remains"):
            self._windows(_PARAMS.patience if exact else None)
        if exact:
            with self.defects_noted("the exact model of what remains"):
                self._exact(1.0)

    @contextmanager
    def defects_noted(self, part: str) -> Iterator[None]:
        """Context of one part of the search: an `Exception` ends that part, not the search, and becomes a note.

        `part` names the part in the note.
        """
        try:
            yield
        except Exception as error:
            note = left_out_note(part, error)
            self._notes += [] if note in self._notes else [note]

    @cached_property
    def _small(self) -> bool:
        """True if the exact model has few enough jobs and order literals."""
        return (
            len(self.jobs.jobs) <= _PARAMS.most_jobs
            and KnownOrder(Operations(self.jobs)).open_pairs() <= _PARAMS.most_literals
        )

    def in_finer_ticks(self) -> Replanned | None:
        """Return the best order in ticks in which every span is a whole number, improved by CP-SAT.

        None if ticks are fine enough, no order is known, the time is over, the user stopped the search or the model is
        too large; also if memory is not safe for the order's timings in finer ticks.
        """
        parts = fine_enough(self.jobs)
        if parts == 1 or self.placed is None or self._over or not self._small:
            return None
        limits = replace(self.limits, seconds=max(0.0, self._end - time.monotonic()))
        fine = _Search(finer(self.problem, parts), self.state.finer(parts), limits, self.report, self.stop)
        fine.bound = max(fine.bound, ceil(self.bound * parts))
        placed = fine._placed_at({n: start * parts for n, start in self.placed.start.items()})
        if placed is None:
            return None
        fine._keep(placed)
        fine._exact(1.0)
        # Spans are fractions of the problem's ticks, whatever the ticks of the model.
        fine.bound = simplest(least_from(Fraction(fine.bound) / parts, self.jobs.parts) * parts)
        return replace(fine.result(), notes=tuple(dict.fromkeys([*self._notes, *fine._notes])))

    def _placed_at(self, starts: Mapping[JobId, TimeSteps]) -> PlacedJobs | None:
        return placed_at(grouped_at(self.jobs, starts), starts, self._openings(starts))

    def _openings(self, starts: Mapping[JobId, TimeSteps]) -> list[TimeSteps]:
        """Return the step from which the time of each device counts: 0 for the makespan, else that of its first job.

        That may be in the past; 0 for a device without jobs.
        """
        first: dict[int, int] = {}
        for n, start in starts.items():
            for device in self.jobs.devices(n):
                first[device] = min(start, first.get(device, start))
        opened = self.jobs.opened or (0,) * self.problem.devices
        return [first.get(device, 0) if since is None else since for device, since in enumerate(opened)]

    def keep_validated(self, starts: Mapping[JobId, TimeSteps], waits: Iterable[tuple[JobId, JobId]]) -> None:
        """Validate an order, by the start steps of its jobs and its waits (job, later job), and report it as the best.

        Raises `Disagreement` if it is not valid.
        """
        jobs = self.jobs
        events = tuple(Wait(jobs.jobs[one].task, jobs.jobs[other].task) for one, other in waits)
        able = [
            Replanned(self.problem, self.state, Status.FEASIBLE, self.bound, self._in_ticks(starts, later), events)
            for later in self._delays(starts)
        ]
        best = min(able, key=lambda one: one.value or 0)
        wrong = validate_from_state(self.problem, self.state, best.tasks or {})
        if wrong:
            raise Disagreement(f"ordering anew gave a schedule that is not valid: {wrong[0].text}", "replanning")
        self.best = best
        self.report(self.result())

    def _delays(self, starts: Mapping[JobId, TimeSteps]) -> set[TimeSteps]:
        """Return candidate delays of all starts, in steps; with one of them rounding to ticks makes no span longer.

        Tasks of length 0 take a step each. If a device begins just before a tick, these may move its end past the next
        tick, so that rounding makes its span longer; this does not happen if it begins at a tick. With a suitable delay
        no device begins too late in a tick: each device rules out `zeros` delays, at most `parts` devices count, and a
        tick has one step more than the product. The least such delay puts the beginning of some device at a tick.
        """
        if not self.jobs.opened:
            return {0}
        return {0, *(-opening % self.jobs.scale for opening in self._openings(starts))}

    def _in_ticks(self, starts: Mapping[JobId, TimeSteps], later: TimeSteps) -> dict[Task, Ran]:
        """Return start and end of all tasks in ticks; jobs not begun start `later` steps after `starts`.

        Steps are rounded down to ticks.
        """
        jobs, ran = self.jobs, dict(self.state.ran)
        for n, step in sorted(starts.items(), key=lambda one: one[1]):
            task, start = jobs.jobs[n].task, (step + later) // jobs.scale
            if task not in self.state.ran:
                ran[task] = Ran(start, start + jobs.jobs[n].steps // jobs.scale)
        return ran

    def result(self) -> Replanned:
        """Return the best answer so far, with the bound proved so far; without an order it is infeasible or unknown."""
        if self.best is None:
            status = Status.INFEASIBLE if self._infeasible else Status.UNKNOWN
            return Replanned(self.problem, self.state, status, self.bound, notes=tuple(self._notes))
        assert self.best.value is not None
        status = Status.OPTIMAL if self.bound >= self.best.value else Status.FEASIBLE
        return replace(self.best, status=status, lower_bound=self.bound, notes=tuple(self._notes))

    def _keep(self, placed: PlacedJobs) -> None:
        if self.placed is None or placed.value < self.placed.value:
            self.keep_validated(placed.start, placed.waits)
            self.placed = placed

    @property
    def _done(self) -> bool:
        # An order that starts in whole ticks has no value between the bound and the next whole tick.
        proved = self.best is not None and self.best.value is not None and self.best.value <= ceil(self.bound)
        return proved or self._over

    @property
    def _over(self) -> bool:
        over = self.limits.deterministic is None and time.monotonic() >= self._end
        return over or self._infeasible or self.stop.is_set()

    def _exact(self, share: float) -> None:
        if self._done:
            return
        jobs = self.jobs
        known = None if self.placed is None else self.placed.start
        ample = sum(job.steps for job in jobs.jobs) + sum(one.lag for one in jobs.precedences) + max(jobs.release)
        value = self.best.value if self.best is not None and self.best.value is not None else -(-ample // jobs.scale)
        try:
            model = ExactModel(jobs, value, self.bound if known else 0, starts=known)
        except TooLong:
            return
        limits = self.limits
        seconds = share * (self._end - time.monotonic())
        parameters = Parameters(seconds, limits.deterministic, limits.seed, limits.workers, limits.gap)
        answer = solve_model(model.cp, parameters, self.stop)
        if answer.infeasible:
            self._infeasible = True
            return
        if answer.bound >= 0 and model.bounds_everything:
            self.bound = max(self.bound, model.bound(answer.bound))
        if answer.has_solution:
            starts = model.starts(answer.value_of)
            placed = self._placed_at(starts)
            if placed is not None:
                self._keep(placed)

    def _windows(self, patience: int | None) -> None:
        if self.placed is None:
            return
        search, vain, counted = WindowSearch(self.placed, self.limits), 0, self.limits.deterministic is not None
        solved = 0
        while (
            not self._done
            and (patience is None or vain < patience)
            and not (counted and solved >= _PARAMS.counted_windows)
        ):
            better = search.step(self._end - time.monotonic(), self.stop)
            vain, solved = 0 if better else vain + 1, solved + 1
            if better:
                self._keep(search.placed)


def fine_enough(jobs: Jobs) -> int:
    """Return the number of parts into which to split a tick, so that spans of orders are whole numbers of parts.

    It is limited so that sums of steps do not overflow in CP-SAT; then not all spans are. 1: no finer ticks are needed,
    or possible.
    """
    ample = jobs.scale * sum(job.steps for job in jobs.jobs) + max(jobs.release, default=0)
    able = (lcm(*range(1, parts + 1)) for parts in range(jobs.parts, 0, -1))
    return next(parts for parts in able if (parts <= _PARAMS.most_parts and parts * ample < MOST_STEPS) or parts == 1)


def least_value(problem: Problem, state: State, jobs: Jobs) -> Ticks:
    """Return a lower bound in ticks: for every stream, its first possible start and then all of its remaining work.

    The work is that of the cheapest modes. Tasks that have run, or are running, count too. For a span, each device's
    time counts from its first start.
    """
    opened, most = [since and since // jobs.scale for since in jobs.opened] or [0] * problem.devices, 0
    for task, one in state.ran.items():
        most = max(most, one.end - (opened[problem.device(task.of)] or 0))
    for where, here in jobs.on.items():
        if jobs.opened and len(jobs.devices_on(where)) > 1:
            continue  # its devices begin at different times
        since = opened[where.device]
        ahead = 0 if since is None else min(map(jobs.released, here)) // jobs.scale - since
        work: dict[int | None, list[int]] = {}
        for n in here:
            choice, option = jobs.jobs[n].choice, jobs.jobs[n].option
            options = 1 if choice is None else jobs.choices[choice].options
            work.setdefault(choice, [0] * options)[option if options > 1 else 0] += jobs.jobs[n].steps // jobs.scale
        most = max(most, ahead + sum(map(min, work.values())))
    return most
