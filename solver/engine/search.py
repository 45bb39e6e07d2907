"""One search: the subsolvers of an engine around an incumbent, within the limits."""

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
    """Sizes and times by which a search decides what there is time for."""

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
    """A construction heuristic for first schedules, with the name shown in progress; frozen, with its parameters."""

    @property
    def name(self) -> str: ...

    def applies(self, search: Search, /) -> bool:
        """True if it can contribute."""

    def run(self, search: Search) -> None:
        """Offer schedules to the incumbent, or claim bounds, and keep to the time. May be ended between two steps."""


class Subsolver(Protocol):
    """A subsolver that shares the time of a search slice by slice. Frozen data, as a construction heuristic."""

    @property
    def name(self) -> str: ...

    @property
    def parallel(self) -> bool:
        """True if it uses all workers; otherwise background local search runs on the remaining ones."""

    @property
    def restarts(self) -> bool:
        """True if each slice restarts, so that a longer one does more than several."""

    def serves(self, search: Search, /) -> bool:
        """True if it can contribute to the problem at all; never a judgement of its worth."""

    def kernels(self, search: Search, /) -> Kernels | None:
        """The compiled code that it calls; it has no slice before that is there."""

    def work(self, search: Search, /) -> Work:
        """Offer schedules to the incumbent, or claim bounds, within one slice after the other."""


class DedicatedSubsolver(Subsolver, Protocol):
    """A subsolver that may have a core of its own instead of slices."""

    def alone(self, search: Search, /) -> None:
        """Until nothing is left to do, or the search is over; what it finds is said to be by its name."""


@dataclass(frozen=True)
class RoundRobin:
    """A round-robin group of subsolvers, which get slices in turn."""

    name: str
    members: tuple[Subsolver, ...]


def members_of(one: Subsolver | RoundRobin) -> tuple[Subsolver, ...]:
    """The subsolvers of a group; a single one is its own group."""
    return one.members if isinstance(one, RoundRobin) else (one,)


class Bounding(Protocol):
    """Source of the initial lower bounds."""

    def certificates(self, problem: Problem, clock: Clock, stop: Event) -> tuple[list[Certificate], list[str]]:
        """Strongest first, at least one; and notes on bounds that were left out."""


@dataclass(frozen=True)
class Engine:
    """The components of a solve. A subsolver may be replaced or left out; the result is still correct, only weaker.

    The heuristics of `construction` run first, one after the other, within their own time; then the `subsolvers` that
    serve the problem share the time while the gap is open (`Allocation`). With several cores the `dedicated_subsolver`
    has one of its own, once it would have its first slice. `raise_bounds` lets subsolvers look for lower bounds besides
    schedules. `background` runs local search in the background of subsolvers that use one core. `finish` turns a
    finished search into its solution. For a problem with more than plain passes, its relaxation is searched by the
    subsolvers of `relaxed`, and the plain problem whose stages are its tasks by those of `as_stages`; they share the
    time with the others.
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
        """All subsolvers, also those of groups."""
        return [one for each in self.subsolvers for one in members_of(each)]


class Search:
    """The context of subsolvers: problem, limits, clock, incumbent, and the schedules that local search starts from.

    `over` is also asked: True if the search has become pointless. `chains` are given if the problem is the chain form
    of one with unequal micro-batches. A search within another uses its `clock`.
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
        clock: Clock | None = None,
    ) -> None:
        self.problem, self.stop, self._stop, self.engine, self.chains = problem, stop, stop, engine, chains
        self._limits, self.cores_taken = limits, 0
        self.clock, self.times = clock or Clock(limits), PartTimes()
        with self.times.of(ANALYTIC):
            certificates, notes = engine.bounds.certificates(problem, self.clock, stop)
        self.incumbent = Incumbent(problem, certificates, self.clock, report)
        for text in notes:
            self.incumbent.note(text)
        self.candidates: tuple[Candidate, ...] = ()
        self.orders: OrderSearch | None = None
        self._starts: dict[Value, Timeline] = {}
        self.kernels = kernels_for(problem)
        # The best value of schedules, and bound, that the running subsolver has found, better than those known or not.
        self.own_value: Value | None = None
        self.own_bound: Value | None = None
        self._over, self.ended = over, False
        self._no_schedule: str | None = None  # why there is none

    @property
    def passes(self) -> int:
        """About how many passes a schedule has."""
        return 3 * sum(map(len, self.problem.microbatches_of))

    @property
    def tasks(self) -> int:
        """Number of tasks of all modes together."""
        network = self.problem.network
        return sum(len(own) * len(network.numbers[of]) for of, own in network.tasks.items())

    @property
    def very_long(self) -> bool:
        return self.passes > SEARCH.very_long

    @cached_property
    def long_times(self) -> bool:
        """True if times of diagrams may need more than 32 bits."""
        return longest_of_all(self.problem) >= ENDLESS

    @property
    def limits(self) -> Limits:
        """Limits of the current subsolver: without the workers that are dedicated to another."""
        return replace(self._limits, workers=self.workers) if self.cores_taken else self._limits

    @property
    def workers(self) -> int:
        return (self._limits.workers or os.cpu_count() or 1) - self.cores_taken

    @property
    def can_improve_orders(self) -> bool:
        """True if there is time for a first move."""
        return self.clock.allowed() > self.tasks * SEARCH.seconds_per_task

    def open_ticks(self) -> tuple[float, float]:
        """The lower bound and the value of the incumbent, in ticks."""
        state = self.incumbent.state
        assert state.value is not None
        return float(state.lower_bound), float(state.value)

    @property
    def takes_long_to_state(self) -> bool:
        """True if stating a model of all passes takes more than the remaining time, and gigabytes."""
        return self.clock.left() <= self.tasks * SEARCH.stating_seconds_per_task

    def over(self) -> bool:
        """True if no subsolver gets another slice."""
        return self.ended or self.done() or self.clock.left() <= 0

    def open(self) -> None:
        """Run every construction heuristic of the engine."""
        for heuristic in self.engine.construction:
            with self.incumbent.defects_noted(heuristic.name):
                if not self.ended and heuristic.applies(self):
                    self.incumbent.enter(heuristic.name)
                    with self.times.of(heuristic.name):
                        heuristic.run(self)

    @contextmanager
    def stopping_when_done(self) -> Iterator[None]:
        """Context in which `stop` is also set once the search is done; not under a deterministic limit."""
        stop = self.stop
        if not self.clock.counts_work:
            self.stop = Asking(lambda: stop.is_set() or self.ended or self.done())
        try:
            yield
        finally:
            self.stop = stop

    def end(self) -> None:
        """Run no more subsolvers: what was found will do."""
        self.ended = True

    def compiled(self, kernels: Kernels | None) -> bool:
        """True if the kernels are compiled; starts compilation. Under a deterministic limit calls compile."""
        return kernels is None or self.clock.counts_work or kernels.wait(lambda: True, self.workers)

    def done(self) -> bool:
        """True if nothing is left to search: proved within the gap, the target reached or refuted, or stopped."""
        state, target = self.incumbent.state, self.limits.target
        close = state.value is not None and gap(state.value, state.lower_bound) <= self.limits.gap
        met = target is not None and state.value is not None and state.value <= target
        missed = target is not None and state.lower_bound > target
        return close or met or missed or self._stop.is_set() or self._over()

    def offer_order(self, schedule: Schedule, by: str | None = None) -> Timeline | None:
        """Times for an order, kept if they are better; the best timeline if this one is as good."""
        timeline = best_times(self.problem, schedule)
        return timeline if self.incumbent.offer(timeline, by) == self.incumbent.value else None

    def start_from(self, schedule: Schedule) -> None:
        """A schedule that local search may go on from even where it is not the best."""
        self.start_from_timeline(best_times(self.problem, schedule))

    def start_from_timeline(self, timeline: Timeline) -> None:
        """`start_from` for a timeline, with its times."""
        value = self.incumbent.offer(timeline)
        self._starts.setdefault(value, timeline)
        self.own_value = value if self.own_value is None else min(value, self.own_value)

    def found_bound(self, bound: Value) -> None:
        """A bound of the running subsolver, which need not be better than those known."""
        self.own_bound = bound if self.own_bound is None else max(bound, self.own_bound)

    def improve_orders(
        self, limits: Limits, done: Callable[[], bool], offer: Callable[[Schedule], Timeline | None]
    ) -> bool:
        """Local search from the best schedule within the limits; it goes on from where the one before ended.

        Whether there is anything that it can move.
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
        """The best of the schedules to start from."""
        return [self._starts[value] for value in sorted(self._starts)[: SEARCH.starts]]

    def prove_infeasible(self, reason: str) -> None:
        """There is no schedule, for this reason: nothing is left to search."""
        self._no_schedule = reason
        self.end()

    def infeasible(self, reason: str) -> Solution:
        """The result for a problem without any schedule."""
        found = Solution(self.problem, Status.INFEASIBLE, 0, None, reason=reason, wall_seconds=self.clock.seconds)
        return in_common_ticks(found, None, self.incumbent.state.certificate)

    def solution(self) -> Solution:
        """The result so far, in the ticks that value and bound need. No bound is reported that was not checked."""
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
