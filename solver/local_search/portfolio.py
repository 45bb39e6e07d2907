"""A portfolio of local searches on parallel threads: simulated annealing and large-neighbourhood search, in rounds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count

import numpy as np

from formulations.window.operation_units import Operations, dominated_split, modes_matter
from formulations.window.order_units import Units
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.limits import Limits
from solver.local_search.annealing import Annealer, AnnealingParameters
from solver.local_search.pool import Member, Pool
from solver.local_search.window_lns import Windows, timed

# Low temperatures refine an order, high ones leave it; which helps differs from problem to problem.
_STRONG = (
    AnnealingParameters(hot=1.0, cold=0.05, evenness=0.1, filling=0),
    AnnealingParameters(hot=0.5, cold=0.1, evenness=0.1, filling=0),
    AnnealingParameters(hot=1.0, cold=0.1, evenness=0.03, filling=0),
)
_GENTLE = (
    AnnealingParameters(hot=0.03, cold=0.005, evenness=0.3, filling=0.3),
    AnnealingParameters(hot=0.1, cold=0.01, evenness=0.3, filling=0),
    AnnealingParameters(hot=0.03, cold=0.005, evenness=1.0, filling=0.3),
    AnnealingParameters(hot=0.01, cold=0.002, evenness=1.0, filling=0.3),
)
# Where modes are open, changes of modes at a middle temperature come first: they alone get far from a start whose modes
# are poor. The lowest temperatures gain most from a good start: they stand where the first jobs take them that go on
# from the best schedule, since some are windows or begin elsewhere. Without changes of modes nothing was gained.
_OPEN_MODES = (
    AnnealingParameters(hot=0.3, cold=0.05, evenness=0.3, filling=0.1, changing=0.3),
    AnnealingParameters(hot=0.1, cold=0.02, evenness=1.0, filling=0.1, changing=0.15),
    AnnealingParameters(hot=0.1, cold=0.02, evenness=0.03, filling=0, changing=0.2),
    AnnealingParameters(hot=0.06, cold=0.01, evenness=1.0, filling=0, changing=0.2),
    AnnealingParameters(hot=0.03, cold=0.005, evenness=0.3, filling=0.3, changing=0.2),
    AnnealingParameters(hot=0.05, cold=0.01, evenness=0.3, filling=0.3, changing=0.2),
    AnnealingParameters(hot=0.1, cold=0.01, evenness=0.1, filling=0, changing=0.05),
)
# From so many units on a round is too short for high temperatures.
_MANY_UNITS = 1500
# Every so many jobs one solves windows instead of annealing.
_WINDOWS_EVERY = 5
# A round's length in seconds: the first, by how much each round that finds nothing lengthens the next, and the most.
_FIRST_ROUND, _LONGER, _LONGEST_ROUND = 2.0, 1.2, 20.0
# Moves that a unit of CP-SAT's deterministic time stands for, and moves of a round where time is counted so.
_MOVES_PER_UNIT, _SURE_ROUND = 5_000, 50_000
# Moves to measure the speed with: fewer where there are many units, since each move then takes longer.
_PROBE, _LEAST_PROBE, _PROBED_UNITS = 2_000, 100, 2_000_000


class OrderSearch:
    """Rounds of jobs, annealing and LNS windows: a third of them from the timelines of a pool, else from the best."""

    def __init__(self, best: Timeline, others: Sequence[Timeline], limits: Limits, done: Callable[[], bool]) -> None:
        self.best, self.limits, self.done = best, limits, done
        self._pool = Pool(best, others)
        self.workers = limits.workers or os.cpu_count() or 1
        # By id of the timeline started from, which is kept alive here so that its id is not reused.
        self._annealers: dict[int, tuple[Timeline, Units | Operations, Annealer]] = {}
        self._windows = Windows(limits.deterministic is not None)
        units = sum(map(len, best.schedule.orders))
        few = units < _MANY_UNITS
        self._probe = min(_PROBE, max(_LEAST_PROBE, _PROBED_UNITS // max(1, units)))
        self._open_modes = modes_matter(best.problem)
        self._parameters = _OPEN_MODES if self._open_modes else (*_STRONG, *_GENTLE[:2]) if few else _GENTLE
        self._leaving = max(self._parameters, key=lambda one: one.hot)._replace(leaving=True)
        self._seed = limits.seed * 1_000_003
        self._per_second = 0.0
        self._halt = np.zeros(1, np.int64)

    def run(self, seconds: float, offer: Callable[[Schedule], Timeline | None]) -> None:
        """Anneal for so many seconds; `offer` gets every order found and returns the timeline to continue from.

        Ends early once `done`. Under a deterministic limit rounds are counted instead of seconds.
        """
        deadline = time.monotonic() + seconds
        length = _FIRST_ROUND
        rounds = self._rounds()
        with ThreadPoolExecutor(self.workers) as pool:
            for number in rounds:
                left = deadline - time.monotonic()
                if self.done() or (self.limits.deterministic is None and left <= 0):
                    return
                seconds = min(length, left)
                moves = self._moves(seconds)
                first = number * self.workers
                jobs = range(first, first + self.workers)
                before = self.best
                members = [self._member(job, before) for job in jobs]
                futures = [
                    pool.submit(self._job, job, before, member, moves, seconds)
                    for job, member in zip(jobs, members, strict=True)
                ]
                try:
                    while wait(futures, timeout=0.1).not_done:
                        # A Ctrl-C is heard here, and rounds may be long.
                        late = self.limits.deterministic is None and time.monotonic() > deadline
                        self._halt[0] = late or self.done()
                except BaseException:
                    self._halt[0] = True
                    raise
                for future, member in zip(futures, members, strict=True):
                    self._take(future.result(), member, offer)
                self._forget()
                length = _FIRST_ROUND if self.best is not before else min(_LONGEST_ROUND, length * _LONGER)

    def _take(
        self, schedule: Schedule | None, member: Member | None, offer: Callable[[Schedule], Timeline | None]
    ) -> None:
        """What a job found: for the incumbent, and for the member of the pool that it began with."""
        better = None if schedule is None else offer(schedule)
        if better is not None:
            self.best = better
        if member is not None:
            timeline = timed(member.timeline.problem, schedule) if better is None and schedule is not None else better
            member.became(timeline)

    def _forget(self) -> None:
        """What was made for timelines that nothing goes on from any more."""
        used = {id(self.best), *(id(one.timeline) for one in self._pool.members)}
        self._annealers = {key: made for key, made in self._annealers.items() if key in used}

    def _rounds(self) -> Sequence[int] | count[int]:
        if self.limits.deterministic is None:
            return count()
        return range(max(1, int(self.limits.deterministic * _MOVES_PER_UNIT) // (_SURE_ROUND * self.workers)))

    def _moves(self, seconds: float) -> int:
        """How many moves fit into so many seconds."""
        if self.limits.deterministic is not None:
            return _SURE_ROUND
        if not self._per_second:
            # The first call compiles, which is not to be counted.
            for _ in range(2):
                started = time.monotonic()
                self._anneal(self.best, self._parameters[0], 0, self._probe)
                self._per_second = self._probe / (time.monotonic() - started)
        return max(self._probe, int(self._per_second * seconds))

    def _member(self, number: int, best: Timeline) -> Member | None:
        """Whom a job goes on from: every third from the pool, unless it solves windows, the others from the best."""
        return self._pool.member(number // 3, best) if number % 3 == 2 and number % _WINDOWS_EVERY != 1 else None

    def _job(self, number: int, best: Timeline, member: Member | None, moves: int, seconds: float) -> Schedule | None:
        """Now and then windows, else annealing: from a member of the pool, if one is given, or from the best."""
        seed = self._seed + number
        if number % _WINDOWS_EVERY == 1:
            return self._windows.improve(best, seed, seconds)
        # The windows before do not count, so that each has its turn.
        parameters = self._parameters[(number - (number + 3) // _WINDOWS_EVERY) % len(self._parameters)]
        if member is not None and member.stuck:
            parameters = self._leaving
        return self._anneal(best if member is None else member.timeline, parameters, seed, moves)

    def _anneal(self, start: Timeline, parameters: AnnealingParameters, seed: int, moves: int) -> Schedule | None:
        problem = start.problem
        openings = [0] * problem.devices
        if problem.objective is Objective.SPAN:
            held = map(start.schedule.passes_on, range(problem.devices))
            openings = [min(map(start.start, passes), default=0) for passes in held]
        if id(start) not in self._annealers:
            units = self._units(problem, start.schedule)
            self._annealers[id(start)] = start, units, Annealer(units)
        _, units, annealer = self._annealers[id(start)]
        found = annealer.run(units.orders, openings, parameters, moves, seed, self._halt)
        return None if found is None else found.schedule

    def _units(self, problem: Problem, schedule: Schedule) -> Units | Operations:
        """What annealing moves: operations, where their modes can gain."""
        if self._open_modes:
            return Operations(problem, schedule)
        return Units(problem, dominated_split(problem, schedule))
