"""Large-neighbourhood search at task level: CP-SAT reorders the jobs within windows of time on adjacent devices."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from threading import Event

from formulations.jobs.placed_jobs import PlacedJobs
from formulations.jobs.quantities import JobId
from formulations.window.task_window import TaskWindow
from solver.backends.cp_sat import Parameters, solve_model
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.tasks.placing import put_back


@dataclass(frozen=True)
@tunable
class WindowParams:
    """Size and time of the windows of large-neighbourhood search, each solved by CP-SAT.

    The first window has `first_size` tasks; sizes are multiplied by `growth` after a window solved to its end, else
    divided by it. A window gets `seconds`, or `counted_work` units of CP-SAT's deterministic time. Half of the windows
    are on the 1 / `among_longest` of the streams that end last.
    """

    first_size: int = tuned(64, "tasks of the first window", 2, 10_000)
    growth: float = tuned(1.1, "times larger after a window solved to its end, smaller after another", 1.01, 4)
    seconds: float = tuned(1.0, "s for one window", 0.05, 60)
    counted_work: float = tuned(0.2, "units of CP-SAT's deterministic time for one window", 0.01, 60)
    among_longest: int = tuned(3, "1 / this of the streams, that end last: half of the windows are there", 1, 100)


_PARAMS = WindowParams()


class WindowSearch:
    """Repeated search of random windows, whose size adapts to what CP-SAT solves in the time for one window.

    `placed` is the best schedule so far.
    """

    def __init__(self, placed: PlacedJobs, limits: Limits) -> None:
        self.placed = placed
        self._limits, self._random, self._size = limits, Random(limits.seed), float(_PARAMS.first_size)

    def step(self, left: float, stop: Event) -> bool:
        """Solve one window within `left` seconds and replace `placed` if it is no worse; True if the value improved.

        A window has at most a second (`WindowParams.seconds`), or counted work. Raises `TooLong` if CP-SAT's integers
        cannot represent the times.
        """
        model = self._choose()
        deterministic = None if self._limits.deterministic is None else _PARAMS.counted_work
        parameters = Parameters(
            min(_PARAMS.seconds, left),
            deterministic,
            self._random.randrange(2**31),
            self._limits.workers,
        )
        answer = solve_model(model.cp, parameters, stop)
        self._size = self._size * (_PARAMS.growth if answer.complete else 1 / _PARAMS.growth)
        if not answer.has_solution:
            return False
        placed = put_back(model.window, model.starts(answer.value_of))
        if placed is None or placed.value > self.placed.value:
            return False
        better, self.placed = placed.value < self.placed.value, placed
        return better

    def _choose(self) -> TaskWindow:
        """Return the CP-SAT model of a random window: about `_size` jobs of some adjacent devices and an interval.

        Half of the windows are placed where one of the longest streams idles. Raises `TooLong` if CP-SAT's integers
        cannot represent the times.
        """
        placed, random = self.placed, self._random
        devices = placed.jobs.problem.devices
        wide = devices if random.randrange(2) else random.randint(1, devices)
        lowest = random.randint(0, devices - wide)
        middle = random.choice(list(placed.start))
        if random.randrange(2):
            middle = _waiting(placed, random)
            near = placed.jobs.device(middle)
            lowest = min(max(0, near - random.randrange(wide)), devices - wide)
        free = range(lowest, lowest + wide)
        starts = sorted(start for n, start in placed.start.items() if placed.jobs.device(n) in free)
        count = min(len(starts), max(2, round(self._size)))
        first = min(max(0, bisect_left(starts, placed.start[middle]) - random.randint(0, count)), len(starts) - count)
        return TaskWindow(placed, starts[first], starts[first + count - 1] + 1, free)


def _waiting(placed: PlacedJobs, random: Random) -> JobId:
    """Return a job before which its stream, one of the longest, idles; any job of that stream if there is none."""
    took = {where: placed.end(order[-1]) - placed.opening[where.device] for where, order in placed.orders.items()}
    longest = sorted(took, key=lambda where: -took[where])[: max(1, len(took) // _PARAMS.among_longest)]
    order = placed.orders[random.choice(longest)]
    waiting = [n for b, n in pairwise(order) if placed.start[n] > placed.end(b)]
    return random.choice(waiting or list(order))
