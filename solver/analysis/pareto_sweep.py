"""Pareto frontier of time against memory: best value and bound at capacities from the least to ample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import log, sqrt
from threading import Event

from pipesched.arguments import A_PROBLEM, refuse_other
from pipesched.deadline import asking, within
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import in_ticks_of
from pipesched.results.analysis.frontier import Frontier, Point
from pipesched.results.analysis.memory_scale import MemoryScale
from pipesched.results.candidate import Candidate
from pipesched.results.solution import Solution
from pipesched.schedule.metrics import measure
from solver.analysis.memory_levels import MemoryLevels
from solver.analysis.pareto_front import ParetoFront
from solver.analysis.time_budget import Budget
from solver.construction.timing import best_times
from solver.limits import Limits, limits_from
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class CurveParams:
    """Number of levels, and time, of the curve of analytic bounds over memory, which is computed after the solves."""

    levels: int = tuned(60, "levels between the least and the greatest", 1, 1000)
    share: float = tuned(
        0.2,
        "of the time limit at most, reserved for it by the seconds that such bounds took before",
        0,
        0.5,
        "V of 16 devices, 64 micro-batches, 20 s: 72 levels of 0.2 s; all of them leave 6 s for 12 solves",
    )


_PARAMS = CurveParams()
# An interval is not halved if its log width is less than this part of an even share of the log range, unless the curve
# is flat everywhere else: otherwise points would crowd at one step of the curve, and the next step would get none.
_NARROW = Fraction(1, 2)
# Nor is an interval over which the curve falls by less than this part of its whole fall: nothing changes there.
FLAT = 0.02
_JUST_UNDER = 1 - Fraction(1, 10**12)


def _bisected(number: int) -> float:
    """Return entry `number` of the van der Corput sequence 0, 1/2, 1/4, 3/4, 1/8, ...

    Sorting numbers by it gives an order in which every beginning is spread evenly over their range.
    """
    share, part = 0.0, 0.5
    while number:
        number, bit = divmod(number, 2)
        share, part = share + bit * part, part / 2
    return share


def _reach(numbers: Sequence[Fraction]) -> float:
    """Return the logarithm of the ratio of the greatest to the least number; 0 if there is none or the least is 0."""
    return log(max(numbers) / min(numbers)) if numbers and min(numbers) > 0 else 0.0


# Called with how many of how many points are done, the scale of levels, and the level of the next point.
OnProgress = Callable[[int, int, MemoryScale, Fraction], None]


def frontier(
    problem: Problem,
    points: int = 12,
    limits: Limits | None = None,
    on_progress: OnProgress | None = None,
    stop: Event | None = None,
    within: tuple[Fraction, Fraction] | None = None,
    *,
    seconds: float | None = None,
) -> Frontier:
    """Return the best value and bound at about `points` memory levels, from the least of any schedule to ample memory.

    The next level is in the interval over which the curve falls most, so that points gather where it bends. `limits`
    are for the whole sweep, and `seconds` replaces their time limit. The capacities of the file limit nothing. If every
    device has one they are one of the points, where that is below the memory of the fastest schedule found. If they
    differ between devices, a level is a share of them, else an amount in the file's unit. `within` has the least and
    the greatest level to look at (None: from the least of any schedule to ample memory). Setting `stop` ends the sweep
    with the points so far. `on_progress(done, points, scale, level)` is called before each solve, with the number of
    points done and the level of the next. Raises `ValueError` for an objective other than makespan and span, for fewer
    than two points, and for a range that no schedule fits.
    """
    refuse_other("frontier", problem, Problem, A_PROBLEM)
    limits = limits_from("frontier", limits, seconds)
    if problem.objective.repeats or problem.objective.leaves is not None:
        raise ValueError("a frontier is of makespan or span")
    if points < 2:
        raise ValueError("a frontier has two points or more: the least memory and ample memory")
    sweep = _Sweep(problem, points, limits, on_progress or (lambda *_: None), stop or Event(), within)
    if within is not None and (within[0] > within[1] or within[1] < sweep.levels.least()):
        raise ValueError(f"no schedule fits with less than {sweep.scale.text(sweep.levels.least())}")
    sweep.ends()
    sweep.between()
    sweep.curve()
    return sweep.result()


class _Sweep:
    """Sweep over memory levels.

    The problem is solved at some of them, and the results form the Pareto front of `result`. Levels are in the units of
    `scale`: `low` and `high` are the ends of the range, `own` is the file's own level (None without one), and `solved`
    has those done. `late`: the time is over. `ends` solves at the ends of the range, `between` inside it, and `curve`
    adds analytic bounds at many more levels.
    """

    def __init__(
        self,
        problem: Problem,
        points: int,
        limits: Limits,
        on_progress: OnProgress,
        stop: Event,
        within: tuple[Fraction, Fraction] | None,
    ) -> None:
        self.problem, self.points, self.on_progress, self.within = problem, points, on_progress, within
        self.budget = Budget(limits, points, stop)
        own = MemoryLevels(problem).scale
        self.unlimited = problem.with_room((None,) * problem.devices)
        self.levels = MemoryLevels(self.unlimited, own.weights if own.by_share else None)
        self.scale = replace(self.levels.scale, problem=problem)
        first = problem.room[0]
        alike = first is not None and first > 0 and set(problem.room) == {first}
        self.own = Fraction(1) if own.by_share else first * problem.resolution if alike and first is not None else None
        least, most = self.levels.least(), self.levels.most()
        low, high = (least, most) if within is None else (max(least, within[0]), min(most, within[1]))
        self.low, self.high = self.levels.snapped(low), self.levels.snapped(high)
        self.front = ParetoFront(self.levels)
        self.solved: set[Fraction] = set()
        self.candidates: tuple[Candidate, ...] = ()
        self.late = False
        self.notes: list[str] = []

    def ends(self) -> None:
        """Solve at the greatest level, the least, and the file's own capacity if it lies between.

        The last two are solved only if they are below the memory of the fastest schedule found by then.
        """
        ample = self.high == self.levels.most()
        self.candidates = self.solve(self.high, self.unlimited if ample else None).candidates
        for candidate in self.candidates:
            if candidate.timeline is not None:
                timed = best_times(self.unlimited, candidate.timeline.schedule)
                if self.scale.of(measure(timed)) <= self.high:
                    self.front.keep(timed)
        top = self.front.top()
        for level in (self.low, self.own):
            if top is not None and level is not None and self.low <= level < top:
                self.in_time(self.levels.snapped(level))

    def between(self) -> None:
        """Solve within the interval over which the curve falls most, until points or time are enough."""
        while len(self.solved) < self.points and not self.late:
            self._reserve()
            middle = within(self.budget.deadline(), self._next)
            if middle is None:
                self.late = self.late or self.budget.over()
                return
            self.in_time(middle)

    def in_time(self, level: Fraction) -> None:
        """Solve with the capacities of a memory level, unless the time is over; then set `late`."""
        self.late = self.late or self.budget.over()
        if not self.late:
            self.solve(level)

    def solve(self, level: Fraction, problem: Problem | None = None) -> Solution:
        self.on_progress(len(self.solved), self.points, self.scale, level)
        solution = self.budget.ask(problem or self.levels.under(level))
        self.solved.add(level)
        self.notes += [note for note in solution.notes if note not in self.notes]
        if solution.certificate is not None:
            bound = in_ticks_of(self.problem, solution.lower_bound_ticks, solution.problem)
            self.front.prove(level, replace(solution.certificate, value_ticks=bound))
        if solution.timeline is not None:
            self.front.keep(solution.timeline)
        return solution

    def _next(self) -> Fraction | None:
        """Return the next level: in the interval of largest log memory ratio x log of possible speed-up; or None.

        It is the interval's middle, or first its lower end if that is only known from a schedule and may be better.
        Narrow intervals have the lowest priority; those over which the curve hardly falls are left out. None if no
        interval remains.
        """
        choices: list[tuple[bool, float, Fraction]] = []
        shown = self._shown()
        whole, fall = _reach([p.level for p in shown]), _reach([p.value for p in shown if p.value])
        for low, high in pairwise(shown):
            known = low.level in self.solved or low.gap == 0
            level = self._middle(low.level, high.level) if known else low.level
            if not low.value or not high.value or not low.level or level is None or level in self.solved:
                continue
            if log(low.value / high.value) < FLAT * fall:
                continue
            reachable = max(high.value, min(low.value, self.front.analytic(level).value_ticks * self.problem.tick))
            area = log(low.value / reachable) * log(high.level / low.level)
            if area > 0:
                wide = log(high.level / low.level) * self.points > _NARROW * whole
                choices.append((wide, area, level))
        return max(choices)[2] if choices else None

    def _shown(self) -> list[Point]:
        """Return the points of the front from the least level of the sweep on."""
        return [point for point in self.front.points() if point.level >= self.low]

    def _middle(self, low: Fraction, high: Fraction) -> Fraction | None:
        """Return a level between `low` and `high`, near their geometric mean.

        If possible it is a whole number of the largest activations. None if no schedule can have a level between them.
        """
        mean = Fraction(sqrt(low * high))
        unit = 0 if self.scale.by_share else max(self.problem.network.memory_in_flight) * self.problem.resolution
        wanted = [mean]
        if unit:
            floor_level = Fraction(mean // unit * unit)
            wanted = [*sorted((floor_level, floor_level + unit), key=lambda level: abs(level - mean)), mean]
        snapped = map(self.levels.snapped, wanted)
        return next((level for level in snapped if low < level < high), None)

    def curve(self) -> None:
        """Compute analytic bounds at many more levels: just below each point, and spread over the range."""
        top, least = self.front.top(), self.low
        if top is None:
            return
        wanted = [point.level * _JUST_UNDER for point in self._shown()]
        if least > 0:
            spread = sorted(range(_PARAMS.levels), key=_bisected)
            wanted += [least * Fraction(float(top / least) ** (number / _PARAMS.levels)) for number in spread]
        within(self.budget.deadline(), lambda: self._bound([level for level in wanted if level >= least]))

    def _bound(self, levels: Sequence[Fraction]) -> None:
        """Compute analytic certificates at these levels.

        May be interrupted between any two, or within one, which is then left out.
        """
        for level in asking(levels):
            self.front.analytic(self.levels.snapped(level))

    def _reserve(self) -> None:
        """Reserve time at the end of the budget for the curve, from the time that such bounds have taken so far."""
        seconds = self.front.seconds_of_analytic(self.points + _PARAMS.levels)
        self.budget.reserved = min(seconds, _PARAMS.share * self.budget.limits.seconds)

    def result(self) -> Frontier:
        bounds = [(level, bound) for level, bound in self.front.bounds() if level >= self.low]
        left = max(0, self.points - len(self.solved))
        stopped = self.budget.stop.is_set()
        return Frontier(
            scale=self.scale,
            least=self.levels.least(),
            points=tuple(self._shown()),
            bounds=tuple(bounds),
            steps=tuple(self.front.steps(bounds, self.high)),
            candidates=self.candidates,
            own=self.own,
            within=self.within,
            untried=left if self.late or stopped else 0,
            not_needed=0 if self.late or stopped else left,
            interrupted=stopped,
            notes=tuple(self.notes),
        )
