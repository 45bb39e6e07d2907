"""Orders anew what remains of an iteration: a first answer at once, then CP-SAT on all of it or on windows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from threading import Event

from formulations.exact.exact_model import ExactModel
from formulations.jobs.gathers import grouped_at
from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_that_remain import jobs_that_remain
from formulations.jobs.placed_jobs import PlacedJobs
from formulations.variables.known_order import KnownOrder
from formulations.variables.literal_count import open_pairs
from formulations.variables.literals import TooLong
from formulations.variables.operations import Operations
from pipesched.errors import Disagreement
from pipesched.problem.problem import Problem
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
    """The exact model and windows for what is left of an iteration."""

    most_jobs: int = tuned(5_000, "jobs of the exact model", 10, 10**6)
    most_literals: int = tuned(12_000, "order literals, beyond which nothing is refuted in a minute", 100, 10**6)
    first_share: float = tuned(0.2, "of the time, for the exact model before windows", 0, 1)
    patience: int = tuned(12, "windows without gain, before the exact model has the rest", 1, 1000)
    counted_windows: int = tuned(6, "windows, where work is counted", 1, 1000)


_PARAMS = ReplanParams()


Report = Callable[[Replanned], None]


def replan(
    problem: Problem, state: State, limits: Limits, report: Report = lambda _: None, stop: Event | None = None
) -> Replanned:
    """The best order found of what remains; `report` is called at every better one, and first within a second.

    Bounds are CP-SAT's and the work that is left: those of whole iterations do not know what has begun.
    """
    search = _Search(problem, state, limits, report, stop or Event())
    if search.jobs.jobs:
        search.run()
    else:
        search.told({}, ())
    return search.result()


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
        self.bound = least_value(self.problem, self.state, self.jobs)
        self.placed: PlacedJobs | None = None
        self.best: Replanned | None = None
        self._infeasible = (self.jobs.most_further_gathers or 0) < 0

    def run(self) -> None:
        if self._infeasible:
            return
        for starts in first_orders(self.jobs):
            placed = self._placed_at(starts)
            if placed is not None and (self.best is None or not self._done):
                self._keep(placed)
        exact = len(self.jobs.jobs) <= _PARAMS.most_jobs
        exact = exact and open_pairs(KnownOrder(Operations(self.jobs))) <= _PARAMS.most_literals
        if exact:
            self._exact(_PARAMS.first_share if self.placed is not None else 1.0)
        self._windows(_PARAMS.patience if exact else None)
        if exact:
            self._exact(1.0)

    def _placed_at(self, starts: Mapping[int, int]) -> PlacedJobs | None:
        return placed_at(grouped_at(self.jobs, starts), starts, self._openings(starts))

    def _openings(self, starts: Mapping[int, int]) -> list[int]:
        """When each device begins, in steps: 0 where the time of the iteration counts."""
        first: dict[int, int] = {}
        for n, start in starts.items():
            device = self.jobs.device(n)
            first[device] = min(start, first.get(device, start))
        opened = self.jobs.opened or (0,) * self.problem.devices
        return [first.get(device, 0) if since is None else since for device, since in enumerate(opened)]

    def told(self, starts: Mapping[int, int], waits: Iterable[tuple[int, int]]) -> None:
        """A better order by the steps at which its jobs start, judged before it is told of."""
        jobs, ran = self.jobs, dict(self.state.ran)
        for n, step in sorted(starts.items(), key=lambda one: one[1]):
            task, start = jobs.jobs[n].task, step // jobs.scale
            if task not in self.state.ran:
                ran[task] = Ran(start, start + jobs.jobs[n].steps // jobs.scale)
        wrong = validate_from_state(self.problem, self.state, ran)
        if wrong:
            raise Disagreement(f"ordering anew gave a schedule that is not valid: {wrong[0].text}", "replanning")
        events = tuple(Wait(jobs.jobs[one].task, jobs.jobs[other].task) for one, other in waits)
        self.best = Replanned(self.problem, self.state, Status.FEASIBLE, self.bound, ran, events)
        self.report(self.result())

    def result(self) -> Replanned:
        """The best so far, with what is proved by now."""
        if self.best is None:
            status = Status.INFEASIBLE if self._infeasible else Status.UNKNOWN
            return Replanned(self.problem, self.state, status, self.bound)
        assert self.best.value is not None
        status = Status.OPTIMAL if self.bound >= self.best.value else Status.FEASIBLE
        return replace(self.best, status=status, lower_bound=self.bound)

    def _keep(self, placed: PlacedJobs) -> None:
        if self.placed is None or placed.value < self.placed.value:
            self.placed = placed
            self.told(placed.start, placed.waits)

    @property
    def _done(self) -> bool:
        over = self.limits.deterministic is None and time.monotonic() >= self._end
        proved = self.best is not None and self.best.value is not None and self.best.value <= self.bound
        return over or proved or self._infeasible or self.stop.is_set()

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
            self.bound = max(self.bound, int(model.bound(answer.bound)))
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


def least_value(problem: Problem, state: State, jobs: Jobs) -> int:
    """What every stream has left to run, after the first of it can start, in ticks: of each choice the least.

    And what has run, or runs already. Of a span each device counts from its beginning.
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
