"""One search: problem, limits, incumbent, and the interfaces of the subsolvers that share it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from threading import Event
from typing import Protocol

from pipesched.problem.attainable_spans import Value
from pipesched.problem.chains.microbatch_chains import MicrobatchChains
from pipesched.problem.problem import Problem
from pipesched.results.candidate import Candidate
from pipesched.results.certificate import Certificate
from pipesched.results.gap import gap
from pipesched.results.solution import Solution, Status
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.backends.interruptible import Asking
from solver.construction.timing import best_times
from solver.diagram.completion import ENDLESS
from solver.diagram.modelled_steps import longest_of_all
from solver.engine.clock import ANALYTIC, Clock, PartTimes
from solver.engine.incumbent.common_ticks import in_common_ticks
from solver.engine.incumbent.incumbent import Incumbent, Report
from solver.engine.kernels import Kernels, kernels_for
from solver.engine.slices import Work
from solver.limits import Limits
from solver.local_search.portfolio import OrderSearch
from solver.parameters import tunable, tuned
from solver.tasks.job_units import start_of


@dataclass(frozen=True)
@tunable
class SearchParams:
    """Sizes and times from which a search predicts which of its steps fit into the time left.

    `very_long` is a number of passes. Times are seconds for each task: to time and validate a schedule, and to state
    the exact model. Local search starts from at most `starts` schedules.
    """

    very_long: int = tuned(
        20_000, "passes, from which schedules of fewer micro-batches are extended", 1_000, 200_000,
        "writing down one published schedule of so many passes takes a part of a second",
    )  # fmt: skip
    seconds_per_task: float = tuned(
        1e-4, "s to time and validate a schedule, and before local search makes its first move", 1e-6, 1e-2
    )
    stating_seconds_per_task: float = tuned(1e-3, "s to state the exact model", 1e-5, 1e-1)
    starts: int = tuned(6, "schedules that local search starts from", 1, 50)


SEARCH = SearchParams()


class ConstructionHeuristic(Protocol):
    """Interface of a construction heuristic for first schedules: a frozen dataclass of its parameters, with a name."""

    @property
    def name(self) -> str: ...

    def applies(self, search: Search, /) -> bool:
        """True if the heuristic can contribute to this search, in which case `run` is called."""

    def run(self, search: Search) -> None:
        """Offer schedules to the incumbent, or end the search as infeasible, within this heuristic's time."""


class Subsolver(Protocol):
    """Interface of a subsolver that runs in slices of a search's time: a frozen dataclass of its parameters."""

    @property
    def name(self) -> str: ...

    @property
    def parallel(self) -> bool:
        """True if the subsolver uses all workers; otherwise local search runs on the others in the background."""

    @property
    def restarts(self) -> bool:
        """True if each slice starts from scratch, so that one long slice achieves more than several short ones."""

    def serves(self, search: Search, /) -> bool:
        """True if the subsolver supports the problem, however useful it may be there."""

    def kernels(self, search: Search, /) -> Kernels | None:
        """Return the compiled code that the subsolver calls (None: none).

        The subsolver gets no slice before that code is compiled.
        """

    def work(self, search: Search, /) -> Work:
        """Return a generator that gets slice after slice and offers schedules, or claims bounds, within each."""


class DedicatedSubsolver(Subsolver, Protocol):
    """Interface of a subsolver that may run on a core of its own, beginning with its turn, instead of in slices."""

    def alone(self, search: Search, /) -> None:
        """Run until nothing is left to do or the search is over; results are reported under the subsolver's name."""


@dataclass(frozen=True)
class RoundRobin:
    """Group of subsolvers that share one arm of the bandit (`Allocation`) and get its slices in turn."""

    name: str
    members: tuple[Subsolver, ...]


def members_of(one: Subsolver | RoundRobin) -> tuple[Subsolver, ...]:
    """Return the subsolvers of a group in their order, or a single subsolver as the only one."""
    return one.members if isinstance(one, RoundRobin) else (one,)


class Bounding(Protocol):
    """Interface of the source of the lower bounds with which a search begins."""

    def certificates(self, problem: Problem, clock: Clock, stop: Event) -> tuple[list[Certificate], list[str]]:
        """Return at least one certificate, strongest first, and notes on bounds that were left out."""


@dataclass(frozen=True)
class Engine:
    """Components of a solve; any subsolver may be left out, which makes results weaker but not wrong.

    `bounds` gives the first lower bounds. The heuristics of `construction` run next, one after the other. Then the
    `subsolvers` that serve the problem share the time while the gap is open (`Allocation`). With several cores the
    `dedicated_subsolver` gets one of its own when its first slice is due. `raise_bounds` lets subsolvers search lower
    bounds in addition to schedules. `background` runs local search on idle cores while a subsolver uses only one.
    `finish` turns a search that is over into its solution. For a problem with more than plain passes, its relaxation is
    searched by the subsolvers of `relaxed`, and the plain problem whose stages are its tasks by those of `as_stages`;
    they share the time with the others. None for one of these two, or for `dedicated_subsolver`: no such search.
    """

    bounds: Bounding
    construction: tuple[ConstructionHeuristic, ...]
    subsolvers: tuple[Subsolver | RoundRobin, ...]
    finish: Callable[[Search], Solution]
    raise_bounds: bool = True
    background: bool = True
    dedicated_subsolver: DedicatedSubsolver | None = None
    relaxed: Engine | None = None
    as_stages: Engine | None = None

    @property
    def members(self) -> list[Subsolver]:
        """All subsolvers, with those of each group one by one."""
        return [one for each in self.subsolvers for one in members_of(each)]


class Search:
    """Context of subsolvers: problem, limits, clock, incumbent, and the schedules from which local search starts.

    `report` is called with every improvement. The search is done once the event `stop` is set, or the function given as
    `over` returns True. `chains` is given if the problem stands for one with unequal micro-batches, with a chain for
    each factor. A search `within` another one uses its clock, and its workers except those dedicated to one subsolver.
    `candidates` are the results of the published schedules tried so far, `kernels` the compiled code of local search on
    the problem, `times` the seconds of each part of the search. `own_value` and `own_bound` are the best that the
    running subsolver found in its slice, in ticks (None: nothing). `orders` is local search (None before its first
    run), `ended` is True after `end`, and `cores_taken` counts the workers dedicated to one subsolver at this moment.
    """

    def __init__(
        self,
        problem: Problem,
        limits: Limits,
        report: Report,
        stop: Event,
        engine: Engine,
        over: Callable[[], bool] = lambda: False,
        chains: MicrobatchChains | None = None,
        within: Search | None = None,
    ) -> None:
        self.problem, self.stop, self._stop, self.engine, self.chains = problem, stop, stop, engine, chains
        self._limits, self._within, self.cores_taken = limits, within, 0
        self.clock: Clock = Clock(limits) if within is None else within.clock
        self.times = PartTimes()
        with self.times.of(ANALYTIC):
            certificates, notes = engine.bounds.certificates(problem, self.clock, stop)
        self.incumbent = Incumbent(problem, certificates, self.clock, report)
        for text in notes:
            self.incumbent.note(text)
        self.candidates: tuple[Candidate, ...] = ()
        self.orders: OrderSearch | None = None
        self._starts: dict[Value, Timeline] = {}
        self.kernels = kernels_for(problem)
        # The best value of a schedule and the best bound that the running subsolver has found, better than the
        # incumbent or not.
        self.own_value: Value | None = None
        self.own_bound: Value | None = None
        self._over, self.ended = over, False
        self._no_schedule: str | None = None  # why there is none

    @property
    def passes(self) -> int:
        """Approximate number of passes of a schedule: F, B and W of each stage and micro-batch."""
        return 3 * sum(map(len, self.problem.microbatches_of))

    @property
    def tasks(self) -> int:
        """Number of tasks of all micro-batches, with those of every alternative mode (as split and full backwards)."""
        network = self.problem.network
        return sum(len(own) * len(network.numbers[of]) for of, own in network.tasks.items())

    @property
    def very_long(self) -> bool:
        return self.passes > SEARCH.very_long

    @cached_property
    def long_times(self) -> bool:
        """True if times in decision diagrams may need more than 32 bits."""
        return longest_of_all(self.problem) >= ENDLESS

    @property
    def limits(self) -> Limits:
        """Limits of the solve; while a subsolver has a core of its own, `workers` is the number left over by it.

        So they must be read again at each slice. Otherwise `workers` is that of the limits given, in which 0 means all
        cores.
        """
        unchanged = self._within is None and not self.cores_taken
        return self._limits if unchanged else replace(self._limits, workers=self.workers)

    @property
    def workers(self) -> int:
        """Number of workers of the solve, at least 1, without those dedicated to one subsolver at this moment."""
        of_solve = (self._limits.workers or os.cpu_count() or 1) if self._within is None else self._within.workers
        return of_solve - self.cores_taken

    @property
    def can_improve_orders(self) -> bool:
        """True if the time left is enough for local search to set up and make its first move."""
        return self.clock.allowed() > self.tasks * SEARCH.seconds_per_task

    def open_ticks(self) -> tuple[float, float]:
        """Return the lower bound and the incumbent's value, in ticks; there must be an incumbent."""
        state = self.incumbent.state
        assert state.value is not None
        return float(state.lower_bound), float(state.value)

    @property
    def takes_long_to_state(self) -> bool:
        """True if building a CP-SAT model of all passes would take more than the remaining time."""
        return self.clock.left() <= self.tasks * SEARCH.stating_seconds_per_task

    def over(self) -> bool:
        """True if no subsolver gets another slice: the search is done or ended, or the time is over."""
        return self.ended or self.done() or self.clock.left() <= 0

    def open(self) -> None:
        """Run every construction heuristic of the engine that applies, in order, until one ends the search.

        An error in one becomes a note, and the next one runs.
        """
        for heuristic in self.engine.construction:
            with self.incumbent.defects_noted(heuristic.name):
                if not self.ended and heuristic.applies(self):
                    self.incumbent.enter(heuristic.name)
                    with self.times.of(heuristic.name):
                        heuristic.run(self)

    @contextmanager
    def stopping_when_done(self) -> Iterator[None]:
        """Context in which `stop` is also set once the search is done, except under a deterministic limit."""
        stop = self.stop
        if not self.clock.counts_work:
            self.stop = Asking(lambda: stop.is_set() or self.ended or self.done())
        try:
            yield
        finally:
            self.stop = stop

    def end(self) -> None:
        """End the search: no subsolver gets another slice."""
        self.ended = True

    def compiled(self, kernels: Kernels | None) -> bool:
        """True if the kernels are compiled (or None); else starts their compilation and does not wait for it.

        Always True where work is counted: the first call of a kernel compiles it. No more processes compile than there
        are workers.
        """
        return kernels is None or self.clock.counts_work or kernels.wait(lambda: True, self.workers)

    def done(self) -> bool:
        """True if the gap is within its limit, the target is reached or refuted, or the search was stopped."""
        state, target = self.incumbent.state, self.limits.target
        close = state.value is not None and gap(state.value, state.lower_bound) <= self.limits.gap
        met = target is not None and state.value is not None and state.value <= target
        missed = target is not None and state.lower_bound > target
        return close or met or missed or self._stop.is_set() or self._over()

    def offer_order(self, schedule: Schedule, by: str | None = None) -> Timeline | None:
        """Offer a schedule with its best times.

        Return its timeline if that is as good as the incumbent or better, else None. One of equal value is no answer,
        only a start of local search, and is not validated. Raises `Deadlock` if its passes wait for each other in a
        cycle. `by` is the name of the finder in reports, by default the current phase.
        """
        timeline = best_times(self.problem, schedule)
        return timeline if self.incumbent.offer(timeline, by) == self.incumbent.value else None

    def start_from(self, schedule: Schedule) -> None:
        """Offer a schedule with its best times, and keep it as a start of local search even if it is not the best.

        Of several with one value the first is kept. Raises `Deadlock` if its passes wait for each other in a cycle.
        """
        self.start_from_timeline(best_times(self.problem, schedule))

    def start_from_timeline(self, timeline: Timeline) -> None:
        """Offer a timeline, and keep it as a start of local search even if it is not the best.

        Of several with one value the first is kept. A start that is no better than the incumbent is not validated.
        """
        value = self.incumbent.offer(timeline)
        self._starts.setdefault(value, timeline)
        self.own_value = value if self.own_value is None else min(value, self.own_value)

    def found_bound(self, bound: Value) -> None:
        """Record a bound (in ticks) of the running subsolver, even if it is not better than the best known.

        `Allocation` judges by it how far the subsolver is from the best known bound.
        """
        self.own_bound = bound if self.own_bound is None else max(bound, self.own_bound)

    def improve_orders(
        self, limits: Limits, done: Callable[[], bool], offer: Callable[[Schedule], Timeline | None]
    ) -> bool:
        """Run local search from the best schedule within `limits`, continuing where the last run ended.

        `offer` is called with the best schedule of each run, better than the incumbent or not; it returns its timeline
        if that is now the best, else None. `done()` ends all runs early. Returns False if there is no schedule, or none
        of its passes can move, else True.
        """
        best = self.incumbent.timeline
        if best is None:
            return False
        if self.orders is None:
            self.orders = OrderSearch(best, self.starts(), limits, done, partial(start_of, self.problem))
        else:
            self.orders.go_on(best, limits, done)
        return self.orders.run(limits.seconds, offer)

    def starts(self) -> list[Timeline]:
        """Return the schedules from which local search starts, best first.

        They are the best ones kept, one for each value, at most `SEARCH.starts` of them.
        """
        return [self._starts[value] for value in sorted(self._starts)[: SEARCH.starts]]

    def prove_infeasible(self, reason: str) -> None:
        """Record that the problem has no schedule, with the reason shown to the user, and end the search."""
        self._no_schedule = reason
        self.end()

    def infeasible(self, reason: str) -> Solution:
        """Return the solution of a problem without any schedule, with the reason shown to the user."""
        found = Solution(self.problem, Status.INFEASIBLE, 0, None, reason=reason, wall_seconds=self.clock.seconds)
        return in_common_ticks(found, None, self.incumbent.state.certificate)

    def solution(self) -> Solution:
        """Return the result so far, in ticks in which value and bound are integers; its bound has been checked."""
        if self._no_schedule is not None:
            return self.infeasible(self._no_schedule)
        self.incumbent.check_bound()
        state, status = self.incumbent.state, Status.UNKNOWN
        if state.timeline is not None:
            status = Status.OPTIMAL if state.value == state.lower_bound else Status.FEASIBLE
        found = Solution(
            problem=self.problem,
            status=status,
            lower_bound_ticks=0,
            certificate=None,
            candidates=self.candidates,
            history=state.history,
            wall_seconds=self.clock.seconds,
            interrupted=self.stop.is_set(),
            notes=state.notes,
            parts=self.times.taken(),
        )
        return in_common_ticks(found, state.timeline, state.certificate)
