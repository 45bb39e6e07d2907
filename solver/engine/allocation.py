"""Allocation of time slices to subsolvers: the next slice goes to the one that closed most of the gap per unit of time.

Subsolvers are the arms of a bandit. Each has a first slice, in their order. Then the next slice goes to the arm with
the highest worth: the share of the gap that it closed per unit of time, recent slices counting most, or an optimistic
value if that is higher. The optimistic value falls with the time spent on the arm and with the distance of its own
schedules or bounds from the best known. The worth of an arm changes while the gap closes, hence the discount (Garivier
and Moulines, On upper-confidence bound policies for switching bandit problems, 2011).

Local search runs in the background on the other cores while a subsolver uses one; the dedicated worker has no slices.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from pipesched.deadline import Deadline, within
from solver.engine.background_search import BackgroundLocalSearch
from solver.engine.clock import BACKGROUND
from solver.engine.dedicated_worker import DedicatedWorker
from solver.engine.incumbent.state import State
from solver.engine.kernels import STILL_COMPILING, Kernels, compiling
from solver.engine.relaxed import Relaxed, relaxed_search
from solver.engine.search import RoundRobin, Search, Subsolver, members_of
from solver.engine.slices import Slice, Work
from solver.parameters import tunable, tuned

_POLL = 0.05  # seconds between looks at what is being compiled
_COMPILING = "waiting for code to be compiled"
_LEAST = 1e-6  # of the limit: what the shortest slice counts for


@dataclass(frozen=True)
@tunable
class AllocationParams:
    """Parameters of the bandit that allocates time slices to subsolvers; times are shares of the time limit.

    `first_slice` and, of counted work, `first_counted_slice` are the lengths of first slices, `waits_for_compilation`
    the time until which arms that had a slice wait for compilation. `restart_growth` multiplies the time so far for a
    slice that begins from scratch, `discount` what a slice closed for each later slice, and `hope` is the share of the
    gap expected from as much time as an arm has had.
    """

    first_slice: float = tuned(1 / 64, "of the limit", 1 / 1000, 1 / 4)
    first_counted_slice: float = tuned(1 / 8, "of counted work, which is used up after three doublings", 1 / 64, 1)
    restart_growth: float = tuned(3.0, "times the time so far, where a slice begins from the start", 1, 10)
    discount: float = tuned(0.5, "factor on what a slice closed, for each later slice of its arm", 0, 1)
    hope: float = tuned(0.1, "of the gap, expected from as much time as an arm has had", 0.001, 1)
    waits_for_compilation: float = tuned(
        0.5, "of the limit, until which arms that had a slice wait for compilation", 0, 1,
        "a minute without any compiled code, three of the fixed problems: gaps of 2.2, 16.1 and 7.1 % without waiting, "
        ".4 to 1.7, 10.5 and 2.5 % with it, 1.6, 21 and 8.5 % with a fifth of the time",
    )  # fmt: skip


ALLOCATION = AllocationParams()


@dataclass
class SubsolverRun:
    """A subsolver started in a search: its generator `work`, and the time `spent` on it so far.

    The time is a share of the time limit, or of the work under a deterministic limit. `kernels` is the compiled code
    that it needs, None if none. `search` is that of the problem, or of its relaxation.
    """

    search: Search
    subsolver: Subsolver
    kernels: Kernels | None
    work: Work
    spent: float = 0.0

    @property
    def next_slice(self) -> float:
        """Length of the next slice as a share of the time limit: as long as all slices before it together.

        0 before the first slice; longer for a subsolver that starts each slice from scratch.
        """
        return self.spent * (ALLOCATION.restart_growth if self.subsolver.restarts else 1)


@dataclass
class Arm:
    """An arm of the bandit: a subsolver, or a group whose unfinished `runs` get slices in turn (the first is next).

    Times are shares of the time limit, or of the work under a deterministic limit. `spent` is the time used in all.
    `closed` is the discounted sum of the shares of the gap that its slices closed, `taken` that of their times.
    `distance` is how far its last schedule or bound was from the best known, as a share of the gap.
    """

    runs: deque[SubsolverRun]
    spent: float = 0.0
    closed: float = 0.0
    taken: float = 0.0
    distance: float = 0.0

    @property
    def worth(self) -> float:
        """Share of the gap that the next slice is expected to close per unit of time; infinite before the first slice.

        It is the discounted mean over past slices, or an optimistic value if that is higher. The optimistic value falls
        with `spent` and `distance`.
        """
        if not self.spent:
            return inf
        return max(self.closed / self.taken, ALLOCATION.hope / self.spent / (1 + self.distance) ** 2)

    def took(self, share: float, closed: float) -> None:
        self.runs[0].spent += share
        self.spent += share
        discount = ALLOCATION.discount
        self.closed, self.taken = discount * self.closed + closed, discount * self.taken + share


class Allocation:
    """Allocation of a search's time among the subsolvers that serve its problem and those that serve its relaxation.

    Creating it looks for a first schedule of the relaxation, and starts all subsolvers, up to their first slices.
    `arms` are those of the problem's subsolvers, in their order, then those of the relaxation's.
    """

    def __init__(self, search: Search, subsolvers: Sequence[Subsolver | RoundRobin]) -> None:
        self.search = search
        self._relaxed: Relaxed | None = None
        with search.incumbent.defects_noted("the search of plain passes alone"):
            self._relaxed = relaxed_search(search)
        self.arms = _arms(search, subsolvers)
        if self._relaxed is not None:
            within = self._relaxed.search
            self.arms += _arms(within, within.engine.subsolvers)
        self._background, self._dedicated = BackgroundLocalSearch(search), DedicatedWorker(search)

    def run(self) -> None:
        """Run slices until the search is done, the time is over, or no subsolver has work left; then close all.

        The dedicated worker has ended by then, too, and the search is ended (`Search.end`). A note for the user says if
        some subsolvers had no slice since their code was still being compiled.
        """
        search = self.search
        try:
            self.go_on()
            self._dedicated.wait()
        finally:
            self._dedicated.close()
            self.close()
        waits = any(arm.runs and not arm.spent and not self._compiled(arm) for arm in self.arms)
        if waits and not search.done():
            search.incumbent.note(STILL_COMPILING)

    def go_on(self, share: float = inf) -> bool:
        """Run slices for `share` more of the time limit (default: all); True if unfinished subsolvers and time remain.

        Under a deterministic limit it is a share of the work. A subsolver that needs a core of its own is started
        there, gets no slices, and does not count as unfinished. Background local search is paused at the end.
        """
        until = self._spent + share
        try:
            while self._spent < until and not self.search.over() and (arm := self._next()) is not None:
                if self._is_alone(arm.runs[0]):
                    self._background.pause()
                    self._dedicated.begin()
                    arm.runs.popleft()
                else:
                    self._slice(arm)
        finally:
            self._background.pause()
        return any(arm.runs for arm in self.arms) and not self.search.over()

    def _is_alone(self, running: SubsolverRun) -> bool:
        """True if the subsolver runs on the dedicated worker, and therefore gets no slices."""
        return running.search is self.search and self._dedicated.is_for(running.subsolver)

    def close(self) -> None:
        """Close the generators of all unfinished subsolvers, so that none gets another slice."""
        for running in (running for arm in self.arms for running in arm.runs):
            running.work.close()

    @property
    def _spent(self) -> float:
        return sum(arm.spent for arm in self.arms)

    def _next(self) -> Arm | None:
        """Return the unfinished arm of the highest worth whose kernels are compiled, waiting until there is one.

        For the first part of the time limit arms that had a slice wait until those without one are compiled, since
        running meanwhile makes the compilation take twice as long. Returns None if all arms have ended, or if the
        search is over before the kernels of any arm are compiled.
        """
        clock = self.search.clock
        while arms := sorted((arm for arm in self.arms if arm.runs), key=lambda arm: -arm.worth):
            ready = next(filter(self._compiled, arms), None)
            waits = (
                ready is not None
                and ready.spent
                and not arms[0].spent
                and clock.seconds < clock.share(ALLOCATION.waits_for_compilation)
            )
            if (ready is not None and not waits) or self.search.over():
                return ready
            if self.search.incumbent.phase != _COMPILING:
                self.search.incumbent.enter(_COMPILING)
            time.sleep(_POLL)
        return None

    def _compiled(self, arm: Arm) -> bool:
        """True if the kernels of some subsolver of the arm are compiled; that one is then next in the arm."""
        for _ in range(len(arm.runs)):
            running = arm.runs[0]
            # A dedicated worker has its own core and leaves it to a compiler that is running.
            if not compiling() if self._is_alone(running) else running.search.compiled(running.kernels):
                return True
            arm.runs.rotate(-1)
        return False

    def _slice(self, arm: Arm) -> None:
        search, clock, running = self.search, self.search.clock, arm.runs[0]
        # With counted work, slices double from the first one until the work is used up.
        least = ALLOCATION.first_counted_slice if clock.counts_work else ALLOCATION.first_slice
        share = max(least, running.next_slice)
        if running.subsolver.parallel:
            self._background.pause()
        else:
            self._background.go_on()
        before, began = search.incumbent.state, clock.seconds
        running.search.own_value = running.search.own_bound = None
        if self._relaxed is not None and running.search is not search:
            self._relaxed.take_over()
        more = self._run(running, self._slice_of(share))
        arm.distance = _distance(running.search, arm.distance)
        took = share if clock.counts_work else (clock.seconds - began) / clock.share(1.0)
        arm.took(max(took, _LEAST), self._closed(before, search.incumbent.state))
        arm.runs.popleft()
        if more and not (clock.counts_work and running.spent >= 1) and not running.search.done():
            arm.runs.append(running)

    def _slice_of(self, share: float) -> Slice:
        clock, units = self.search.clock, self.search.limits.deterministic
        return Slice(clock, clock.seconds, clock.share(share), None if units is None else share * units)

    def _run(self, running: SubsolverRun, slice_: Slice) -> bool:
        """Run one slice of a subsolver; True if it has work left, False if it ended, failed or was interrupted.

        A failure becomes a note for the user.
        """
        search, more = self.search, None
        search.incumbent.enter(running.subsolver.name)
        with search.incumbent.defects_noted(running.subsolver.name), search.times.of(running.subsolver.name):
            more = within(Deadline.after(search.clock.allowed(), search.stop), partial(_more, running.work, slice_))
            if self._relaxed is not None and running.search is not search:
                self._relaxed.pass_on()
        return bool(more)

    def _closed(self, before: State, after: State) -> float:
        """Return the share of the gap at `before` that slices closed until `after`, by the search's history.

        Steps by background local search and by the dedicated worker are not counted. 0 where there was no gap, or no
        schedule.
        """
        if before.value is None or before.value <= before.lower_bound:
            return 0.0
        background = {BACKGROUND, self._dedicated.subsolver and self._dedicated.subsolver.name}
        moments = after.history[len(before.history) - 1 :]
        gaps = [float((one.value or 0) - one.lower_bound) for one in moments]
        steps = zip(gaps, gaps[1:], moments[1:], strict=False)
        return max(0.0, sum(last - left for last, left, one in steps if one.phase not in background) / gaps[0])


def _distance(search: Search, before: float) -> float:
    """Return how far the last slice's best schedule or bound is from the best known, as a share of the gap.

    The nearer of the two counts. If the slice found nothing or the gap is closed, `before` is returned.
    """
    state = search.incumbent.state
    if state.value is None or state.value <= state.lower_bound:
        return before
    worse = []
    if search.own_value is not None:
        worse.append(search.own_value - state.value)
    if search.own_bound is not None:
        worse.append(state.lower_bound - search.own_bound)
    return max(0.0, float(min(worse) / (state.value - state.lower_bound))) if worse else before


def _arms(search: Search, subsolvers: Sequence[Subsolver | RoundRobin]) -> list[Arm]:
    """Start each subsolver that serves the search's problem, up to its first slice; return their arms.

    A group of which several members serve the problem is one arm.
    """
    begun = (
        [running for one in members_of(subsolver) if (running := _begun(one, search)) is not None]
        for subsolver in subsolvers
    )
    return [Arm(deque(runs)) for runs in begun if runs]


def _begun(subsolver: Subsolver, search: Search) -> SubsolverRun | None:
    """Start a subsolver up to its first slice; None if it does not serve the problem, or fails (with a note)."""
    with search.incumbent.defects_noted(subsolver.name):
        if subsolver.serves(search):
            kernels, work = subsolver.kernels(search), subsolver.work(search)
            next(work, None)
            return SubsolverRun(search, subsolver, kernels, work)
    return None


def _more(work: Work, slice_: Slice) -> bool:
    """Send a slice to a subsolver's generator, which runs until the slice is over; False if the generator has ended."""
    try:
        work.send(slice_)
    except StopIteration:
        return False
    return True
