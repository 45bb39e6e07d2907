"""Large-neighbourhood search: CP-SAT re-optimises windows of a timeline, on all devices or on a few neighbours."""

from __future__ import annotations

import time
from bisect import bisect_left
from itertools import pairwise
from random import Random
from threading import Event

from formulations.window.order_units import Units
from formulations.window.placed import Placed
from formulations.window.window_model import Window
from pipesched.errors import Deadlock
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.backends.cp_sat import Parameters, solve_model
from solver.construction.timing import best_times

# The size of a window in units, at first and at least; it grows while windows are solved to their end.
_SIZE, _SMALLEST = 120.0, 20.0
# Seconds CP-SAT gets for a window, and its own measure of work where time is counted so.
_SECONDS, _DETERMINISTIC = 2.0, 0.5


class Windows:
    """Windows chosen at random, their size suited to what CP-SAT can solve in a second or two."""

    def __init__(self, deterministic: bool) -> None:
        self.deterministic = deterministic
        self.size = _SIZE

    def improve(self, timeline: Timeline, seed: int, seconds: float) -> Schedule | None:
        """The schedule after improving as many windows as the time allows; None if none could be improved.

        Under a deterministic limit it is one window.
        """
        random = Random(seed)
        deadline = time.monotonic() + seconds
        problem, placed, changed = timeline.problem, placed_in(timeline), False
        while True:
            schedule = self._solve(self._choose(placed, random), random, deadline - time.monotonic())
            other = timed(problem, schedule) if schedule is not None else None
            if other is not None:
                changed, timeline = True, other
                placed = placed_in(timeline)
            if self.deterministic or time.monotonic() >= deadline:
                return timeline.schedule if changed else None

    def _solve(self, window: Window, random: Random, seconds: float) -> Schedule | None:
        """The schedule of the window's best solution; None if it is unchanged."""
        work = _DETERMINISTIC if self.deterministic else None
        solved, schedule = solve_window(window, random.randrange(2**31), min(_SECONDS, seconds), work, Event())
        self.size = max(_SMALLEST, self.size * (1.05 if solved else 0.95))
        return schedule

    def _choose(self, placed: Placed, random: Random) -> Window:
        """Half the time anywhere; else around an idle time of one of the devices that take longest."""
        devices = len(placed.orders)
        size = max(2, round(self.size * random.uniform(0.7, 1.4)))
        if random.random() < 0.5:
            wide = devices if random.random() < 0.5 else random.randint(1, max(1, devices // 2))
            lowest = random.randint(0, devices - wide)
            middle = random.choice([n for d in range(lowest, lowest + wide) for n in placed.orders[d]] or [0])
        else:
            middle = _waiting(placed, random)
            wide = min(devices, random.choice((1, 1, 2, 3)))
            near = placed.units.device[middle]
            lowest = min(max(0, near - random.randrange(wide)), devices - wide)
        free = range(lowest, lowest + wide)
        starts = sorted(placed.start[n] for d in free for n in placed.orders[d])
        count = min(len(starts), size)
        first = bisect_left(starts, placed.start[middle]) - random.randint(0, count)
        first = min(max(0, first), len(starts) - count)
        return Window(placed, starts[first], starts[first + count - 1] + 1, free)


def solve_window(
    window: Window, seed: int, seconds: float, deterministic: float | None, stop: Event
) -> tuple[bool, Schedule | None]:
    """Whether it was solved to its end, and the schedule of its best solution; None if it is the one it had.

    `deterministic` counts CP-SAT's own units of work instead of seconds.
    """
    answer = solve_model(window.cp, Parameters(seconds, deterministic, seed, symmetry=False), stop)
    if not answer.has_solution:
        return False, None
    schedule, before = window.schedule(answer.value_of), window.units.schedule(window.placed.orders)
    return answer.complete, schedule if schedule.orders != before.orders else None


def timed(problem: Problem, schedule: Schedule) -> Timeline | None:
    """With times; None if units of no duration are in an order that waits or memory do not allow."""
    try:
        timeline = best_times(problem, schedule)
    except Deadlock:
        return None
    levels = zip(measure(timeline).peak_memory, problem.room, strict=True)
    return timeline if all(capacity is None or peak <= capacity for peak, capacity in levels) else None


def _waiting(placed: Placed, random: Random) -> int:
    """A unit that its device waits for, on one of the devices that take longest; any unit if none waits."""
    took = [placed.end(order[-1]) - placed.opening[d] if order else 0 for d, order in enumerate(placed.orders)]
    longest = sorted(range(len(took)), key=lambda d: -took[d])[: max(1, len(took) // 3)]
    order = placed.orders[random.choice(longest)]
    waiting = [n for before, n in pairwise(order) if placed.start[n] > placed.end(before)]
    return random.choice(waiting or order or [0])


def placed_in(timeline: Timeline) -> Placed:
    """The units of a timeline, with its times."""
    problem = timeline.problem
    units = Units(problem, timeline.schedule)
    start = [timeline.start(slot[0]) for slot in units.slots]
    opening = [0] * problem.devices
    if problem.objective is Objective.SPAN:
        opening = [min((start[n] for n in order), default=0) for order in units.orders]
    return Placed(units, units.orders, start, opening)
