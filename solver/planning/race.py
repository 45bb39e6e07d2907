"""Several plan problems of which the best plan is wanted: time goes to those that may still have it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import starmap
from threading import Event
from typing import Generic, TypeVar

from formulations.partition.bound_rows import mean_load
from pipesched.errors import left_out_note
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain
from pipesched.results.plan import Candidate, Plan
from pipesched.results.plan_figures import StepTime, step_time
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.planning.bounds_of_plans import with_bounds_of
from solver.planning.progress import Report
from solver.planning.quick.first_plan import FirstPlan
from solver.planning.time_shares import TimeShares, named

K = TypeVar("K", bound=Hashable)
Search = Callable[[Iterable[Candidate], PlanProblem, Limits, Report, Event], Plan]
NO_TIME = "not tried: no time was left"


@dataclass(frozen=True)
@tunable
class RaceParams:
    """The time of a race."""

    least_search: float = tuned(1.5, "s or units that a search gets at least, so that fewer problems have one", 0.1, 60)


_PARAMS = RaceParams()


@dataclass
class Raced(Generic[K]):
    """State of one problem in the race. `bound`: no pipeline of it is below; `dropped`: why it was searched no further.

    No step is below `least`: some device has no less than the mean of what all compute and reduce. `first` is a plan
    that was found without a search; `step` is that of the `plan`, or else of the first one.
    """

    key: K
    problem: PlanProblem
    bound: Fraction
    least: Fraction
    plan: Plan | None = None
    step: StepTime | None = None
    dropped: str = ""
    first: FirstPlan | None = None

    @property
    def start(self) -> Candidate | None:
        """The best plan known, with its timeline."""
        if self.plan is not None and self.plan.best is not None:
            return self.plan.best
        return None if self.first is None else self.first.candidate(self.problem)

    def take(self, found: Plan) -> None:
        """Result of a search that starts from the known plan."""
        self.plan = found
        if found.certificate is None:
            self.dropped = found.reason
            return
        self.bound = max(self.bound, found.lower_bound)
        self.least = max(self.least, self.bound)
        self.step = None if found.best is None else step_time(found.problem, found.best)


def raced(
    search: Search, problems: Mapping[K, PlanProblem], limits: Limits, report: Report, stop: Event
) -> list[Raced[K]]:
    """Each problem with the best plan that `search` found, the least step first, then by bound; without a plan last.

    First each gets a plan by a simulation of each placement, the least steps by their bounds first. One whose bound is
    no less than the best step is out, and so, once there is a plan, is what has had no turn when the time is over,
    which is said. Of those that are left the better half goes on, from their plans, for as long again,
    down to one (successive halving: Jamieson and Talwalkar 2016). Times of different problems are compared: they must
    do the same work, in one unit.
    """
    return raced_on(search, list(starmap(entered, problems.items())), limits, report, stop)


def raced_on(
    search: Search, entries: Iterable[Raced[K]], limits: Limits, report: Report, stop: Event
) -> list[Raced[K]]:
    """`raced` from entries that may have first plans: of these only the best are searched, in their order.

    So many that each search has its least time in each round. The others keep their first plans.
    """
    race = _Race(search, sorted(entries, key=lambda one: one.least), limits, report, stop)
    race.run()
    return sorted(race.entries, key=_rank)


class _Race(Generic[K]):
    def __init__(self, search: Search, entries: list[Raced[K]], limits: Limits, report: Report, stop: Event) -> None:
        self.entries, self._report, self._stop = entries, report, stop
        self._plan_from = search
        self._time = TimeShares(limits)

    def run(self) -> None:
        """A first plan of each at once, then rounds among fewer and fewer, the best first, which drop others."""
        if any(one.first is not None for one in self.entries):
            left = self._open(one for one in self.entries if one.first is not None)
            left = left[: self._searchable(len(left))]
        else:
            self._round(self.entries, lambda _: self._time.none())
            left = self._open(self.entries)
        rounds = 1 + max(0, len(left) - 1).bit_length()
        for number in range(1, rounds + 1):
            self._round(left, partial(self._time.part, number / rounds))
            left = self._open(left)[: -(-len(left) // 2)]

    def _round(self, entries: list[Raced[K]], part: Callable[[int], Limits]) -> None:
        for at, one in enumerate(entries):
            if not self._still_wins(one):
                continue
            if not self._time.spent() or all(each.step is None for each in self.entries):
                self._search(one, part(len(entries) - at))
            elif one.plan is None:
                one.dropped = NO_TIME

    def _searchable(self, number: int) -> int:
        """Number of problems that there is time to search, with rounds of halves after the first."""
        least = _PARAMS.least_search
        while number > 1 and self._time.whole < least * number * (1 + (number - 1).bit_length()):
            number -= 1
        return number

    def _open(self, entries: Iterable[Raced[K]]) -> list[Raced[K]]:
        return sorted((one for one in entries if not one.dropped and self._still_wins(one)), key=_rank)

    def _search(self, one: Raced[K], limits: Limits) -> None:
        start = one.start
        starts = [] if start is None else [start]
        told = named(self._report, str(one.key), self._time.seconds)
        try:
            found = self._plan_from(starts, one.problem, limits, told, self._stop)
        except Exception as error:
            one.dropped = left_out_note(str(one.key), error)
            return
        one.take(found if one.plan is None else with_bounds_of(found, one.plan))

    def _still_wins(self, one: Raced[K]) -> bool:
        """True if it may have the best plan; otherwise that is noted."""
        if self._stop.is_set() or (one.plan is not None and one.plan.value == one.plan.lower_bound):
            return False
        best = min((other.step.total for other in self.entries if other.step is not None), default=None)
        if best is not None and one.least >= best:
            one.dropped = one.dropped or f"no step is below {plain(float(one.least))}"
        return not one.dropped


def entered(key: K, problem: PlanProblem) -> Raced[K]:
    """State of a problem before any plan: its bounds, and whether its parameters alone lack room."""
    cluster, capacity = problem.cluster, problem.cluster.capacity
    load = min(mean_load(problem, choice) for choice in problem.choices) * problem.tick
    known = () if problem.step is None else (problem.step.reduction, problem.step.optimizer)
    layers = problem.model.layers
    each = (layer.count * of.get(layer.name, Fraction(0)) for of in known for layer in layers)
    after = sum(each, Fraction(0))
    slowest = max(cluster.slowness or (Fraction(1),))
    one = Raced(key, problem, load, load + after / slowest / cluster.speed)
    state = sum((layer.count * layer.memory for layer in layers), Fraction(0))
    if capacity is not None and state > sum(capacity):
        taken = f"{plain(round(float(state) / cluster.devices, 1))} {cluster.memory_unit}"
        one.dropped = f"its parameters alone take {taken} a device"
    return one


def _rank(one: Raced[K]) -> tuple[bool, Fraction, Fraction]:
    return one.step is None, Fraction(0) if one.step is None else one.step.total, one.bound
