"""Local search within a limit on the objective value: towards less memory, or a smaller mean under random durations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Event, Timer
from typing import Protocol, TypeVar

import numpy as np

from pipesched.errors import Disagreement
from pipesched.int64_arrays import IntArray, int64_array
from pipesched.problem.passes import Task
from pipesched.problem.quantities import DeviceId, Ticks
from pipesched.results.solution import Solution, Status
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.noise import Noise, chosen_starts, factors
from pipesched.simulation.sampled_durations import Floats
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.backends.interruptible import run_until
from solver.local_search.annealing import Annealer, Movable
from solver.local_search.equal_value_kernel import Goal, Heat, Work, settle
from solver.local_search.incremental_simulation import times_of
from solver.local_search.units.order_units import Orders
from solver.parameters import tunable, tuned

Result = TypeVar("Result")


@dataclass(frozen=True)
@tunable
class EqualValueParams:
    """Parameters of annealing within a limit on the value.

    Memory temperatures are in activations of one micro-batch, the largest of any device, divided by the largest weight.
    `reach` is the number of places that most moves move a unit by, at most; `idle_moves` the share of moves that bring
    a unit into an idle time, in the search for a smaller mean.
    """

    reach: int = tuned(8, "places that most moves move a unit by, at most", 1, 1000)
    memory_temperature: float = tuned(0.1, "activations, at first", 1e-3, 10)
    last_memory_temperature: float = tuned(0.002, "activations, at the end", 1e-6, 1)
    idle_moves: float = tuned(0.1, "of moves towards a smaller mean, bring a unit into an idle time", 0, 1)


EQUAL_VALUE = EqualValueParams()


class FixedModes(Movable, Protocol):
    """Interface of units of which annealing changes only the orders; units of one order run one after the other.

    Times are in `scale` steps per tick.
    """

    scale: int

    @property
    def tasks(self) -> Sequence[Task]:
        """The task of each unit; of a block, that of its forward."""

    @property
    def owner(self) -> Sequence[DeviceId]:
        """The device of each order; several orders, as of streams, may be of one device."""


class EqualValueSearch:
    """Annealing of the orders of one timeline towards a second goal, with a limit on the value.

    `units` are the passes or jobs of the timeline, in its orders. `for_memory` seeks less memory, `for_mean` a smaller
    mean under random durations. Full backwards and blocks stay. For the span no device starts before its first start in
    the timeline; for the makespan first starts are free. `openings[d]` is the tick before which device d does not
    start, and `idle_until[d]` that until which it idles in samples of durations.
    """

    def __init__(self, timeline: Timeline, units: FixedModes) -> None:
        problem = timeline.problem
        self.problem = problem
        self.units = units
        self.annealer = Annealer(self.units)
        self.span = problem.objective.by_device
        orders = timeline.schedule.orders
        begun = [min(map(timeline.start, order[0])) if order else 0 for order in orders]
        self.openings = begun if self.span else [0] * problem.devices
        self.idle_until = chosen_starts(timeline) if self.span else [0.0] * problem.devices

    def for_memory(self, most: Ticks, weights: Sequence[int], moves: int, seed: int, halt: IntArray) -> Timeline | None:
        """Return the timeline of least memory met, with a value of at most `most` ticks.

        Compared is the largest peak of a device divided by `weights[d]`, the device's weight (by 1 if that is 0), and
        with smaller shares the means over devices of peaks and of memory in use. None if the given timeline breaks the
        limit or a capacity, or the memory of the result is not safe for every timing. The walk makes `moves` moves, or
        ends early once another thread sets `halt[0]`. `seed` is that of the random numbers.
        """
        unit = max(self.problem.network.memory_in_flight, default=0) / max(1, *weights) or 1.0
        shares = np.array([1 / weights[d] if weights[d] else 1.0 for d in self.units.owner])
        none = np.zeros((len(self.units.tasks), 0))
        hot, cold = EQUAL_VALUE.memory_temperature * unit, EQUAL_VALUE.last_memory_temperature * unit
        return self._walk(self._goal(none, most, shares), hot, cold, 0.0, moves, seed, halt)

    def for_mean(
        self, noise: Noise, most: Ticks | None, temperatures: tuple[float, float], moves: int, seed: int, halt: IntArray
    ) -> Timeline | None:
        """Return the timeline of least mean value under `noise`.

        Its value without noise is at most `most` ticks (None: any). `temperatures` are the first and the last one, in
        mean durations of a unit. None if the given timeline breaks the limit or a capacity, or the memory of the result
        is not safe for every timing. The walk makes `moves` moves, or ends early once another thread sets `halt[0]`.
        `seed` is that of the random numbers.
        """
        hot, cold = (temperature * self.annealer.mean for temperature in temperatures)
        goal = self._goal(self._samples(noise), -1 if most is None else most, np.ones(len(self.units.owner)))
        return self._walk(goal, hot, cold, EQUAL_VALUE.idle_moves, moves, seed, halt)

    def _goal(self, ticks: Floats, most: int, weights: Floats) -> Goal:
        scale, owner = self.units.scale, int64_array(self.units.owner)
        idle_until = scale * np.array(self.idle_until, np.float64)[owner]
        return Goal(ticks, idle_until, owner, self.span, most if most < 0 else most * scale, weights)

    def _walk(
        self, goal: Goal, hot: float, cold: float, filling: float, moves: int, seed: int, halt: IntArray
    ) -> Timeline | None:
        """Anneal towards a goal in `moves` moves and return the best timeline met, with its earliest times.

        `hot` and `cold` are the first and last temperature, in units of the goal; `filling` is the share of moves that
        bring a unit into an idle time; setting `halt[0]` ends the walk. None if the start breaks a limit, or the
        result's memory is not safe for every timing. `seed` is that of the random numbers.
        """
        heat = Heat(max(hot, 1e-9), max(cold, 1e-12), EQUAL_VALUE.reach, filling)
        found, orders = self._settled(goal, heat, moves, seed, halt)
        schedule = None if found < 0 else self.units.schedule(orders)
        return None if schedule is None else simulate(self.problem, schedule, self.openings)

    def _settled(self, goal: Goal, heat: Heat, moves: int, seed: int, halt: IntArray) -> tuple[float, Orders]:
        """Return the least energy met within `moves` moves and its orders.

        The energy is negative, and the orders are those given, if the start breaks a limit. Setting `halt[0]` ends the
        walk. `seed` is that of the random numbers. The energy is what `goal` minimises: memory, or the mean value under
        noise.
        """
        rows, n = self.annealer.rows(self.units.orders), len(self.units.tasks)
        best, opening = rows.order.copy(), self.units.scale * int64_array(self.openings)[self.units.owner]
        room = Work(np.zeros(goal.ticks.shape), np.zeros(goal.ticks.shape), *np.zeros((2, n), np.int64))
        found = settle(self.annealer.shop, rows, times_of(n), room, opening, goal, heat, moves, seed, best, halt)
        return found, [row[:length].tolist() for row, length in zip(best, rows.count, strict=True)]

    def _samples(self, noise: Noise) -> Floats:
        """Return the random duration of every unit in every sample, in steps of the units, shape (units, samples)."""
        units = self.units
        return np.array(
            [
                ticks * factors(task, noise.deviation, noise.samples, noise.seed)
                for task, ticks in zip(units.tasks, units.ticks, strict=True)
            ]
        )


def with_timeline(solution: Solution, timeline: Timeline) -> Solution:
    """Return the solution with another timeline, and its metrics and status accordingly.

    The timeline must be in the ticks of the solution's problem. Raises `Disagreement` if it is not valid.
    """
    violations = validate(timeline)
    if violations:
        raise Disagreement(f"{timeline.schedule.name} retimed gave a schedule that is not valid: {violations[0].text}")
    metrics = measure(timeline)
    proved = metrics.value_ticks(solution.problem.objective) == solution.lower_bound_ticks
    status = Status.OPTIMAL if proved else Status.FEASIBLE
    return replace(solution, timeline=timeline, metrics=metrics, status=status)


def halted(work: Callable[[IntArray], Result], stop: Event, seconds: float | None) -> Result:
    """Return the result of `work(halt)`, compiled code that ends early once `halt[0]` is set.

    It is set once `stop` is, or after `seconds` (None: no limit).
    """
    halt = np.zeros(1, np.int64)
    timer = Timer(seconds, lambda: halt.put(0, 1)) if seconds is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        return run_until(stop, lambda: work(halt), lambda: halt.put(0, 1))
    finally:
        if timer is not None:
            timer.cancel()
