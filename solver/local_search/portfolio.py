"""Portfolio of simulated annealing runs on parallel threads, in rounds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from pipesched.errors import Deadlock
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.construction.timing import best_times
from solver.limits import Limits
from solver.local_search.annealing import Annealer, Movable
from solver.local_search.annealing_run import AnnealingRun
from solver.local_search.pool import Member, Pool
from solver.local_search.pool import length as length_of
from solver.local_search.units.operation_units import Operations, dominated_split, modes_matter
from solver.local_search.units.order_units import Units
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class PortfolioParams:
    """Parameters of the annealing runs, and of the rounds in which they are made.

    `temperatures` are the first ones, run after run, in mean durations of a unit, divided by `cooling` at the end of a
    run; `evenness` is the weight of the mean over devices in the energy. `idle_moves` and `mode_moves` are shares of
    moves. The first round, and each after a gain, has `moves_per_unit` moves for each unit, each round without gain
    `round_growth` times as many as the one before; a unit of counted work has `moves_per_work` moves.
    """

    temperatures: tuple[float, ...] = tuned(
        (1 / 4, 1 / 32, 1, 1 / 16), "mean durations of a pass, at first, run after run", 1e-3, 10,
        "the gentlest first is .3 % worse",
    )  # fmt: skip
    cooling: float = tuned(8.0, "times lower at the end of a run", 1, 1000)
    evenness: float = tuned(0.3, "weight of the mean over devices in the energy", 0, 1)
    idle_moves: float = tuned(0.1, "of moves, bring a unit from anywhere into an idle time", 0, 1)
    mode_moves: float = tuned(0.2, "of moves, change modes where these are open", 0, 1)
    moves_per_unit: int = tuned(200, "moves of the first round, and after each gain", 1, 10**5)
    round_growth: float = tuned(1.1, "times as many moves after a round without gain", 1, 4)
    moves_per_work: int = tuned(5_000, "moves in a unit of counted work", 100, 10**6)


PORTFOLIO = PortfolioParams()


def parameters_for(open_modes: bool) -> tuple[AnnealingRun, ...]:
    """Return the parameters that annealing runs take in turn: low temperatures refine an order, high ones leave it.

    With `open_modes` some moves change backward modes and blocks.
    """
    portfolio = PORTFOLIO
    changing = portfolio.mode_moves if open_modes else 0.0
    return tuple(
        AnnealingRun(hot, hot / portfolio.cooling, portfolio.evenness, portfolio.idle_moves, changing=changing)
        for hot in portfolio.temperatures
    )


# The units of a schedule that annealing moves, and the opening time of each device.
Start = tuple[Movable | Operations, Sequence[int]]


def passes_of(timeline: Timeline) -> Start:
    """Return the units of a timeline for annealing, and for each device the tick from which its time counts.

    That is its first start under the span, else 0. The units are operations where modes can gain, else passes.
    """
    problem, schedule = timeline.problem, timeline.schedule
    openings = [0] * problem.devices
    if problem.objective.by_device:
        passes_of_devices = map(schedule.passes_on, range(problem.devices))
        openings = [min(map(timeline.start, passes), default=0) for passes in passes_of_devices]
    if modes_matter(problem):
        return Operations(problem, schedule), openings
    return Units(problem, dominated_split(problem, schedule)), openings


class OrderSearch:
    """Rounds of annealing runs, one per worker: a third of them from the timelines of a pool, the others from the best.

    The pool begins with `others`; `best` is the best timeline so far. `limits` has workers, seed and limit of work; the
    search ends once `done()` is True. `start_of` returns the units of a timeline and the opening of each of their
    devices; None if its orders do not determine its memory.
    """

    def __init__(
        self,
        best: Timeline,
        others: Sequence[Timeline],
        limits: Limits,
        done: Callable[[], bool],
        start_of: Callable[[Timeline], Start | None] = passes_of,
    ) -> None:
        self.best, self.limits, self.done = best, limits, done
        self._start_of, self._pool = start_of, Pool(best, others)
        self.workers = limits.workers or os.cpu_count() or 1
        # By id of the timeline started from, which is kept alive here so that its id is not reused.
        self._annealers: dict[int, tuple[Timeline, Annealer | None, Sequence[int]]] = {}
        self._number = 0  # of the next job
        annealer, _ = self._annealer(best)
        self._first_round = 0 if annealer is None else PORTFOLIO.moves_per_unit * len(annealer.units.device)
        open_modes = annealer is not None and isinstance(annealer.units, Operations)
        self._parameters = parameters_for(open_modes)
        self._leaving = max(self._parameters, key=lambda one: one.hot)._replace(leaving=True)
        self._seed = limits.seed * 1_000_003
        self._per_second = 0.0  # moves of one worker, by the last job
        self._halt = np.zeros(1, np.int64)

    def go_on(self, best: Timeline, limits: Limits, done: Callable[[], bool]) -> None:
        """Set the best schedule, the limits and the condition `done()` to end for the next `run`.

        The pool and the random numbers continue.
        """
        self.best, self.limits, self.done = best, limits, done
        self.workers = limits.workers or os.cpu_count() or 1

    def run(self, seconds: float, offer: Callable[[Schedule], Timeline | None]) -> bool:
        """Anneal for `seconds`, or as many moves as the counted work allows; False if nothing can move, else True.

        `offer` is called with the best schedule of every run, and returns its timeline if it is now the best, else
        None. Ends early once `done()` is True. Nothing can move if the best schedule has no units for annealing.
        """
        if self._annealer(self.best)[0] is None:
            return False
        deadline, moves, counted = time.monotonic() + seconds, self._first_round, self._counted_moves()
        self._halt[0] = False
        with ThreadPoolExecutor(self.workers) as pool:
            while not self.done():
                before = self.best
                if counted is not None:
                    fitting = min(moves, counted)
                    counted -= fitting
                else:
                    fitting = self._moves_until(deadline, moves)
                if fitting <= 0:
                    break
                self._round(pool, fitting, deadline, offer)
                better = length_of(self.best) < length_of(before)
                moves = self._first_round if better else int(moves * PORTFOLIO.round_growth)
        return True

    def _round(self, pool: Executor, moves: int, deadline: float, offer: Callable[[Schedule], Timeline | None]) -> None:
        """Run one annealing of `moves` moves on each worker; `deadline` is in seconds of the monotonic clock.

        `offer` gets every order found and returns its timeline if now the best, else None.
        """
        best = self.best
        jobs = range(self._number, self._number + self.workers)
        self._number += self.workers
        members = [self._member(job, best) for job in jobs]
        futures = [pool.submit(self._job, job, best, member, moves) for job, member in zip(jobs, members, strict=True)]
        try:
            while wait(futures, timeout=0.1).not_done:
                # Ctrl-C interrupts this loop, and rounds may be long.
                late = self.limits.deterministic is None and time.monotonic() > deadline
                self._halt[0] = late or self.done()
        except BaseException:
            self._halt[0] = True
            raise
        for future, member in zip(futures, members, strict=True):
            self._take(future.result(), member, offer)
        self._forget()

    def _take(
        self, schedule: Schedule | None, member: Member | None, offer: Callable[[Schedule], Timeline | None]
    ) -> None:
        """Offer a run's result, and give it to the pool member that the run started from (None: from the best).

        It also becomes the best schedule if it is no worse than that. `offer` returns its timeline if it is the best of
        the search, else None. `schedule` is None for a run without a result.
        """
        timeline = None if schedule is None else offer(schedule) or _timed(self.best.problem, schedule)
        if timeline is not None and length_of(timeline) <= length_of(self.best):
            self.best = timeline
        if member is not None:
            member.became(timeline)

    def _forget(self) -> None:
        """Drop the annealers of timelines that are no longer used."""
        used = {id(self.best), *(id(one.timeline) for one in self._pool.members)}
        self._annealers = {key: made for key, made in self._annealers.items() if key in used}

    def _counted_moves(self) -> int | None:
        """Return how many moves each worker may make for the counted work; None where seconds count."""
        units = self.limits.deterministic
        return None if units is None else int(units * PORTFOLIO.moves_per_work) // self.workers

    def _moves_until(self, deadline: float, most: int) -> int:
        """Return how many moves a worker makes before `deadline` by the last round's speed, at most `most`.

        `deadline` is in seconds of the monotonic clock; 0 after it. The first round, of a move for each unit, measures
        the speed.
        """
        left = deadline - time.monotonic()
        if left <= 0:
            return 0
        return int(min(most, left * self._per_second)) or self._first_round // PORTFOLIO.moves_per_unit

    def _member(self, number: int, best: Timeline) -> Member | None:
        """Return the pool member from which run `number` starts (every third run); None: from the best schedule."""
        return self._pool.member(number // 3, best) if number % 3 == 2 else None

    def _job(self, number: int, best: Timeline, member: Member | None, moves: int) -> Schedule | None:
        """Make run `number`: `moves` annealing moves from a member of the pool, if given, or from the best schedule.

        Return the best schedule of the run; None if its memory is not safe for every timing, or nothing can move.
        """
        seed, parameters = self._seed + number, self._parameters[number % len(self._parameters)]
        if member is not None and member.stuck:
            parameters = self._leaving
        started = time.monotonic()
        found = self._anneal(best if member is None else member.timeline, parameters, seed, moves)
        if not self._halt[0]:
            self._per_second = moves / max(1e-3, time.monotonic() - started)
        return found

    def _anneal(self, start: Timeline, parameters: AnnealingRun, seed: int, moves: int) -> Schedule | None:
        annealer, openings = self._annealer(start)
        if annealer is None:
            return None
        found = annealer.run(annealer.units.orders, openings, parameters, moves, seed, self._halt)
        return None if found is None else found.schedule

    def _annealer(self, timeline: Timeline) -> tuple[Annealer | None, Sequence[int]]:
        """Return the annealer of a timeline's units (None: nothing to move), and by device the opening in their time.

        Their time is in ticks for passes, in steps for jobs. The annealer is made once for each timeline.
        """
        if id(timeline) not in self._annealers:
            start = self._start_of(timeline)
            made = (None, ()) if start is None else (Annealer(start[0]), start[1])
            self._annealers[id(timeline)] = timeline, *made
        return self._annealers[id(timeline)][1:]


def _timed(problem: Problem, schedule: Schedule) -> Timeline | None:
    """Return the schedule with its best times; None if it deadlocks or exceeds the memory.

    Either can happen if units have no duration.
    """
    try:
        timeline = best_times(problem, schedule)
    except Deadlock:
        return None
    levels = zip(measure(timeline).peak_quanta, problem.room, strict=True)
    return timeline if all(capacity is None or peak <= capacity for peak, capacity in levels) else None
