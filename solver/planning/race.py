"""Race between several plan problems of which only the best plan is asked for, by successive halving.

Time goes to the problems that may still have it.
"""

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
from pipesched.results.plan import Plan, PlanCandidate
from pipesched.results.plan_figures import StepTime, step_time
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.planning.bounds_of_plans import with_bounds_of
from solver.planning.progress import Report
from solver.planning.quick.quick_plan import QuickPlan
from solver.planning.time_shares import TimeShares, named

K = TypeVar("K", bound=Hashable)
Search = Callable[[Iterable[PlanCandidate], PlanProblem, Limits, Report, Event], Plan]
NO_TIME = "not tried: no time was left"


@dataclass(frozen=True)
@tunable
class RaceParams:
    """Least time that a search in a race gets, which limits how many problems are searched."""

    least_search: float = tuned(1.5, "s or units that a search gets at least, so that fewer problems have one", 0.1, 60)


_PARAMS = RaceParams()


@dataclass
class RaceEntry(Generic[K]):
    """State of one plan problem in the race; `key` identifies it.

    `bound` is a lower bound of its pipeline, `least` a lower bound of its training step, both in the file's unit: at
    first the mean over the devices of their work, for `least` with reductions and optimizer steps. `plan` is the result
    of its last search, None before the first one; `first` is a plan made without a search. `step` is the training step
    of the best plan in `plan` (None if it has none) or, before the first search, of `first`. `dropped` is the reason
    why the problem is searched no further (empty: it may be). If `failed`, that reason is an error of its search, which
    proves nothing.
    """

    key: K
    problem: PlanProblem
    bound: Fraction
    least: Fraction
    plan: Plan | None = None
    step: StepTime | None = None
    dropped: str = ""
    first: QuickPlan | None = None
    failed: bool = False

    @property
    def start(self) -> PlanCandidate | None:
        """The best plan known, with its timeline; None if there is none."""
        if self.plan is not None and self.plan.best is not None:
            return self.plan.best
        return None if self.first is None else self.first.candidate(self.problem)

    def take(self, found: Plan) -> None:
        """Record the result of a search from the best plan known; a proof that there is no plan drops the problem."""
        self.plan = found
        if found.certificate is None:
            self.dropped = found.reason
            return
        self.bound = max(self.bound, found.lower_bound)
        self.least = max(self.least, self.bound)
        self.step = None if found.best is None else step_time(found.problem, found.best)


def raced(
    search: Search, problems: Mapping[K, PlanProblem], limits: Limits, report: Report, stop: Event
) -> list[RaceEntry[K]]:
    """Return each problem with the best plan found by `search`: least training step first, those without a plan last.

    `search(starts, problem, limits, report, stop)` returns the best plan of a problem found from the plans `starts`;
    `problems` has a key for each. First each problem gets a plan by one simulation per placement, in the order of the
    lower bounds of their steps. A problem whose bound is no less than the best step is dropped; so is a problem that is
    not yet tried when the time is over and some plan is known. The better half of the remaining problems continues from
    its plans with as much time again, and so on down to one (successive halving: Jamieson and Talwalkar 2016). An error
    of `search` drops its problem (`failed`). The steps of the problems are compared, so they must do the same work and
    have the same time unit.
    """
    return raced_on(search, list(starmap(entered, problems.items())), limits, report, stop)


def raced_on(
    search: Search, entries: Iterable[RaceEntry[K]], limits: Limits, report: Report, stop: Event
) -> list[RaceEntry[K]]:
    """Race plan problems whose entries may have first plans already; return the entries, least training step first.

    `search(starts, problem, limits, report, stop)` returns the best plan of a problem found from the plans `starts`. If
    some entries have a first plan, only the best of these are searched: as many as can get the least time in each
    round. All others stay as they are. Entries without a plan are last. The entries are changed in place; an error of
    `search` drops its problem.
    """
    race = _Race(search, sorted(entries, key=lambda one: one.least), limits, report, stop)
    race.run()
    return sorted(race.entries, key=_rank)


class _Race(Generic[K]):
    def __init__(
        self, search: Search, entries: list[RaceEntry[K]], limits: Limits, report: Report, stop: Event
    ) -> None:
        self.entries, self._report, self._stop = entries, report, stop
        self._plan_from = search
        self._time = TimeShares(limits)

    def run(self) -> None:
        """Make a first plan of each problem, then search in rounds, each among the better half of those before."""
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

    def _round(self, entries: list[RaceEntry[K]], part: Callable[[int], Limits]) -> None:
        for at, one in enumerate(entries):
            if not self._still_wins(one):
                continue
            if not self._time.spent() or all(each.step is None for each in self.entries):
                self._search(one, part(len(entries) - at))
            elif one.plan is None:
                one.dropped = NO_TIME

    def _searchable(self, number: int) -> int:
        """Return how many of `number` problems there is time to search, counting the later rounds."""
        least = _PARAMS.least_search
        while number > 1 and self._time.whole < least * number * (1 + (number - 1).bit_length()):
            number -= 1
        return number

    def _open(self, entries: Iterable[RaceEntry[K]]) -> list[RaceEntry[K]]:
        return sorted((one for one in entries if not one.dropped and self._still_wins(one)), key=_rank)

    def _search(self, one: RaceEntry[K], limits: Limits) -> None:
        start = one.start
        starts = [] if start is None else [start]
        named_report = named(self._report, str(one.key), self._time.seconds)
        try:
            found = self._plan_from(starts, one.problem, limits, named_report, self._stop)
        except Exception as error:
            one.dropped, one.failed = left_out_note(str(one.key), error), True
            return
        one.take(found if one.plan is None else with_bounds_of(found, one.plan))

    def _still_wins(self, one: RaceEntry[K]) -> bool:
        """True if the problem may still have the best plan: it is neither solved to optimality nor dropped.

        A problem whose bound reaches the best step known is dropped here, with the reason in `dropped`. False for all
        once the user has stopped the search.
        """
        if self._stop.is_set() or (one.plan is not None and one.plan.value == one.plan.lower_bound):
            return False
        best = min((other.step.total for other in self.entries if other.step is not None), default=None)
        if best is not None and one.least >= best:
            one.dropped = one.dropped or f"no step is below {plain(float(one.least))}"
        return not one.dropped


def entered(key: K, problem: PlanProblem) -> RaceEntry[K]:
    """Return a problem's entry for the race, without a plan: lower bounds in the file's unit.

    It is dropped at once if the parameters alone exceed the memory of all devices together.
    """
    cluster, capacity = problem.cluster, problem.cluster.capacity
    load = min(mean_load(problem, choice) for choice in problem.choices) * problem.tick
    known = (
        () if problem.step is None or problem.objective.repeats else (problem.step.reduction, problem.step.optimizer)
    )
    layers = problem.model.layers
    each = (layer.count * of.get(layer.name, Fraction(0)) for of in known for layer in layers)
    after = sum(each, Fraction(0))
    slowest = max(cluster.slowness or (Fraction(1),))
    one = RaceEntry(key, problem, load, load + after / slowest / cluster.speed)
    state = sum((layer.count * layer.memory for layer in layers), Fraction(0))
    if capacity is not None and state > sum(capacity):
        taken = f"{plain(round(float(state) / cluster.devices, 1))} {cluster.memory_unit}"
        one.dropped = f"its parameters alone take {taken} a device"
    return one


def _rank(one: RaceEntry[K]) -> tuple[bool, Fraction, Fraction]:
    return one.step is None, Fraction(0) if one.step is None else one.step.total, one.bound
