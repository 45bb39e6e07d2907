"""The frontier of time against memory: best value and bound at capacities from the least that fits to ample ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import log, sqrt
from threading import Event

from pipesched.problem import Objective, Problem
from pipesched.solution import Candidate, Solution
from solver.best_times import best_times
from solver.budget import Budget
from solver.limits import Limits
from solver.memory_levels import MemoryLevels
from solver.staircase import Point, Staircase


@dataclass(frozen=True)
class Frontier:
    """The points of a sweep by rising level, the published schedules with no memory limit, and the file's own level.

    `bounds` are (level, ticks) at more levels: no schedule that fits the level is faster. `untried` is how many of the
    points asked for the time did not last.
    """

    problem: Problem
    levels: MemoryLevels
    points: tuple[Point, ...]
    bounds: tuple[tuple[Fraction, int], ...]
    candidates: tuple[Candidate, ...]
    own: Fraction | None
    untried: int = 0
    interrupted: bool = False

    def bound_steps(self) -> list[tuple[Fraction, int]]:
        """The bound as steps, each to the level given: up to the next level that a schedule can have, nothing changes.

        The first begins at the least level; the last holds with any memory.
        """
        ends = [(self.levels.above(level) or level, bound) for level, bound in self.bounds[:-1]]
        return [*self.bounds[:1], *ends, *self.bounds[-1:]]


# Levels for which the bound is worked out besides, for the curve: so many, and just below each point.
_CURVE = 60
_JUST_BELOW = 1 - Fraction(1, 10**12)

# Hears how many of how many points are done, and the level of the next one.
Hear = Callable[[int, int, MemoryLevels, Fraction], None]


def frontier(
    problem: Problem, points: int, limits: Limits, hear: Hear | None = None, stop: Event | None = None
) -> Frontier:
    """Sweep the capacity: the least that any schedule needs, all that the fastest schedule takes, and between.

    The next point lies in the interval that leaves most open, so that points gather where memory matters. `limits`
    are for the whole sweep. The file's capacities limit nothing; they are one of the points, and where they differ
    they set the unit (a level is then a share of them). ValueError for the objective period and for fewer than two
    points.
    """
    if problem.objective is Objective.PERIOD:
        raise ValueError("a frontier is of makespan or span")
    if points < 2:
        raise ValueError("a frontier has two points or more: the least memory and ample memory")
    sweep = _Sweep(problem, points, limits, hear or (lambda *_: None), stop or Event())
    sweep.ends()
    sweep.between()
    sweep.curve()
    return sweep.result()


class _Sweep:
    """The levels solved for, and the staircase of what came out."""

    def __init__(self, problem: Problem, points: int, limits: Limits, hear: Hear, stop: Event) -> None:
        self.problem, self.points, self.hear = problem, points, hear
        self.budget = Budget(limits, points, stop)
        own = MemoryLevels(problem)
        self.unlimited = replace(problem, memory=replace(problem.memory, capacity=(None,) * problem.devices))
        self.levels = MemoryLevels(self.unlimited, own.weights if own.by_share else None)
        first = problem.memory.capacity[0]
        alike = first is not None and set(problem.memory.capacity) == {first}
        self.own = Fraction(1) if own.by_share else Fraction(first) if alike and first is not None else None
        self.stairs = Staircase(self.levels)
        self.solved: set[Fraction] = set()
        self.candidates: tuple[Candidate, ...] = ()
        self.late = False

    def ends(self) -> None:
        """Ample memory, least memory, and the file's own capacity if it lies between."""
        self.candidates = self.solve(self.levels.most(), self.unlimited).candidates
        for candidate in self.candidates:
            if candidate.timeline is not None:
                self.stairs.keep(best_times(self.unlimited, candidate.timeline.schedule))
        top = self.stairs.top()
        for level in (self.levels.least(), self.own):
            if top is not None and level is not None and self.levels.least() <= level < top:
                self.in_time(self.levels.snapped(level))

    def between(self) -> None:
        """Halve the interval that leaves most open, until there are points enough or no time."""
        while len(self.solved) < self.points and not self.late:
            middle = self._next()
            if middle is None:
                return
            self.in_time(middle)

    def in_time(self, level: Fraction) -> None:
        """Solve, unless the time is up."""
        self.late = self.late or self.budget.over()
        if not self.late:
            self.solve(level)

    def solve(self, level: Fraction, problem: Problem | None = None) -> Solution:
        self.hear(len(self.solved), self.points, self.levels, level)
        solution = self.budget.ask(problem or self.levels.under(level))
        self.solved.add(level)
        if solution.certificate is not None:
            self.stairs.prove(level, solution.certificate)
        if solution.timeline is not None:
            self.stairs.keep(solution.timeline)
        return solution

    def _next(self) -> Fraction | None:
        """In the interval with the greatest area, as ratios: its memory x what it could still be faster.

        Its middle, or first its lower end where that is only known from a schedule.
        """
        choices: list[tuple[float, Fraction]] = []
        for low, high in pairwise(self.stairs.points()):
            level = self._middle(low.level, high.level) if low.level in self.solved else low.level
            if not low.value or not high.value or not low.level or level is None or level in self.solved:
                continue
            reachable = max(high.value, min(low.value, self.stairs.by_words(level).value))
            area = log(low.value / reachable) * log(high.level / low.level)
            if area > 0:
                choices.append((area, level))
        return max(choices)[1] if choices else None

    def _middle(self, low: Fraction, high: Fraction) -> Fraction | None:
        """Near the geometric mean: a whole number of the largest activations, or else any level between."""
        mean = Fraction(sqrt(low * high))
        unit = 0 if self.levels.by_share else max(self.problem.memory.activation)
        wanted = [mean]
        if unit:
            below = Fraction(mean // unit * unit)
            wanted = [*sorted((below, below + unit), key=lambda level: abs(level - mean)), mean]
        snapped = map(self.levels.snapped, wanted)
        return next((level for level in snapped if low < level < high), None)

    def curve(self) -> None:
        """The bound at many more levels, as far as words prove it."""
        top, least = self.stairs.top(), self.levels.least()
        if top is None:
            return
        wanted = [point.level * _JUST_BELOW for point in self.stairs.points()]
        if least > 0:
            wanted += [least * Fraction(float(top / least) ** (number / _CURVE)) for number in range(_CURVE)]
        for level in wanted:
            if level >= least and not self.budget.stop.is_set():
                self.stairs.by_words(self.levels.snapped(level))

    def result(self) -> Frontier:
        return Frontier(
            problem=self.problem,
            levels=self.levels,
            points=tuple(self.stairs.points()),
            bounds=tuple(self.stairs.bounds()),
            candidates=self.candidates,
            own=self.own,
            untried=max(0, self.points - len(self.solved)) if self.late else 0,
            interrupted=self.budget.stop.is_set(),
        )
