"""One search: the phases of an engine in turn, around an incumbent, within the limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Protocol

from formulations.variables.literal_count import literal_count
from pipesched.problem.attainable_spans import Value
from pipesched.problem.microbatch_chains import MicrobatchChains
from pipesched.problem.problem import Problem
from pipesched.results.candidate import Candidate
from pipesched.results.certificate import Certificate
from pipesched.results.gap import gap
from pipesched.results.solution import Solution, Status
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.backends.interruptible import run_within
from solver.construction.timing import best_times
from solver.engine.clock import Clock
from solver.engine.common_ticks import in_common_ticks
from solver.engine.incumbent import Incumbent, Report
from solver.engine.kernels import Kernels, kernels_for
from solver.engine.part_times import ANALYTIC, PartTimes
from solver.engine.tuning import MANY_PASSES, OTHER_STARTS, REFUTABLE_LITERALS, STATING_SECONDS_A_PASS
from solver.limits import Limits
from solver.local_search.portfolio import OrderSearch


class Phase(Protocol):
    """A part of the search, under a name that progress shows. Phases are data: frozen, with their tuning as fields."""

    @property
    def name(self) -> str: ...

    def applies(self, search: Search, /) -> bool:
        """Whether it has anything to do."""

    def run(self, search: Search) -> None:
        """Offer schedules to the incumbent, or claim bounds. May be ended between any two steps."""


class Bounding(Protocol):
    """What gives the bounds to start with."""

    def certificates(self, problem: Problem, clock: Clock, stop: Event) -> tuple[list[Certificate], list[str]]:
        """Strongest first, at least one; and the names of bounds that took too long."""


@dataclass(frozen=True)
class Engine:
    """What a solve is made of. A part may be replaced or left out; what remains is still correct, only weaker.

    `opening` phases look for a first schedule and keep to the time by themselves; `phases` follow while something is
    open and time is left. `raise_bounds` lets phases look for lower bounds besides schedules: by refutation
    (`destructive`). Local search goes on beside phases that use one core (`meanwhile`).
    `finish` turns a search that is over into its solution. `several_tasks`
    says that all of it holds too where passes are several tasks.
    """

    bounds: Bounding
    opening: tuple[Phase, ...]
    phases: tuple[Phase, ...]
    finish: Callable[[Search], Solution]
    raise_bounds: bool = True
    destructive: bool = True
    meanwhile: bool = True
    several_tasks: bool = False


class Search:
    """What the phases work on: problem, limits, clock, incumbent, and the schedules that local search starts from.

    `over` is asked besides: whether the search has become pointless. `chains` are given where the problem is theirs and
    stands for one of unequal micro-batches.
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
    ) -> None:
        if not (engine.several_tasks or problem.network.one_task_each):
            raise ValueError("an engine for passes of one task each, and a problem whose passes are several")
        self.problem, self.limits, self.stop, self.engine, self.chains = problem, limits, stop, engine, chains
        self.clock, self.parts = Clock(limits), PartTimes()
        with self.parts.of(ANALYTIC):
            certificates, late = engine.bounds.certificates(problem, self.clock, stop)
        self.incumbent = Incumbent(problem, certificates, self.clock, report)
        if late:
            self.incumbent.note(f"bounds left out, since they take too long for the time limit: {', '.join(late)}")
        self.candidates: tuple[Candidate, ...] = ()
        self.orders: OrderSearch | None = None
        self._starts: dict[Value, Timeline] = {}
        self.kernels = kernels_for(problem)
        self.entered: set[str] = set()  # the names of phases that have begun
        self._over, self._ended = over, False

    @property
    def passes(self) -> int:
        """About how many passes a schedule has."""
        return 3 * sum(map(len, self.problem.microbatches_of))

    @property
    def very_long(self) -> bool:
        return self.passes > MANY_PASSES

    @property
    def refutable(self) -> bool:
        """Whether the exact model is so small that CP-SAT refutes more than orders of steps do in the same time."""
        return literal_count(self.problem) <= REFUTABLE_LITERALS

    @property
    def takes_long_to_state(self) -> bool:
        """Whether stating a model of all passes takes more than what is left of the time, and gigabytes."""
        return self.clock.left() <= self.passes * STATING_SECONDS_A_PASS

    def run(self) -> None:
        """Every phase until done."""
        if self.engine.phases and not self.problem.network.options and not self.clock.counts_work:
            self.kernels.begin()
        for phase in self.engine.opening:
            if not self._ended:
                with self.incumbent.defects_noted():
                    self._run(phase)
        for phase in self.engine.phases:
            if not self._ended and not self.done() and self.incumbent.timeline is not None and self.clock.left() > 0:
                with self.incumbent.defects_noted():
                    run_within(self.clock.allowed(), self.stop, partial(self._run, phase))

    def _run(self, phase: Phase) -> None:
        if phase.applies(self):
            self.incumbent.enter(phase.name)
            self.entered.add(phase.name)
            with self.parts.of(phase.name):
                phase.run(self)

    def end(self) -> None:
        """No more phases: what was found will do."""
        self._ended = True

    def kernels_ready(self, share: float = 1.0) -> bool:
        """Whether local search could begin at once, waiting for that until this share of the time left is over."""
        if self.clock.counts_work:
            return True
        left = (1 - share) * self.clock.left()
        return self.kernels.wait(lambda: self.stop.is_set() or self.clock.left() <= left)

    def compiled(self, kernels: Kernels, share: float) -> bool:
        """Whether a phase could call these at once, waiting for that within its share of the time.

        Counted work compiles where it calls them.
        """
        if self.clock.counts_work:
            return True
        kernels.begin()
        until = self.clock.left() - self.clock.left(share)
        return kernels.wait(lambda: self.stop.is_set() or self.clock.left() <= until)

    def done(self) -> bool:
        """Whether nothing is left to search: proved within the gap, the target reached or refuted, or told to stop."""
        state, target = self.incumbent.state, self.limits.target
        close = state.value is not None and gap(state.value, state.lower_bound) <= self.limits.gap
        met = target is not None and state.value is not None and state.value <= target
        missed = target is not None and state.lower_bound > target
        return close or met or missed or self.stop.is_set() or self._over()

    def offer_order(self, schedule: Schedule) -> Timeline | None:
        """Times for an order, kept if they are better; the best timeline if this one is as good."""
        timeline = best_times(self.problem, schedule)
        return timeline if self.incumbent.offer(timeline) == self.incumbent.value else None

    def start_from(self, schedule: Schedule) -> None:
        """A schedule that local search may go on from even where it is not the best."""
        self.start_from_timeline(best_times(self.problem, schedule))

    def start_from_timeline(self, timeline: Timeline) -> None:
        """As `start_from`, with its times."""
        self._starts.setdefault(value_of(self.problem, timeline), timeline)
        self.incumbent.offer(timeline)

    def improve_orders(self, seconds: float, workers: int, done: Callable[[], bool]) -> None:
        """Local search from the best schedule for so many seconds; it goes on from where the one before ended."""
        best, limits = self.incumbent.timeline, replace(self.limits, workers=workers)
        if best is None:
            return
        if self.orders is None:
            self.orders = OrderSearch(best, self.starts(), limits, done)
        else:
            self.orders.go_on(best, limits, done)
        self.orders.run(seconds, self.offer_order)

    @property
    def has_starts(self) -> bool:
        return bool(self._starts)

    def starts(self) -> list[Timeline]:
        """The best of the schedules to start from."""
        return [self._starts[value] for value in sorted(self._starts)[:OTHER_STARTS]]

    def infeasible(self, reason: str) -> Solution:
        """The result for a problem without any schedule."""
        found = Solution(self.problem, Status.INFEASIBLE, 0, None, reason=reason, wall_seconds=self.clock.seconds)
        return in_common_ticks(found, None, self.incumbent.state.certificate)

    def solution(self) -> Solution:
        """The result so far, in the ticks that value and bound need. No bound is reported that was not checked."""
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
            parts=self.parts.taken(),
        )
        return in_common_ticks(found, state.timeline, state.certificate)
