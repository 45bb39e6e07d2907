"""First plans of a placement for one order: each partition is simulated once.

The partitions include those of all narrower restrictions, so that more freedom never gives worse plans. Where the order
exceeds the memory on a partition, further partitions leave the devices that lack memory more of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import repeat

from heuristics.catalogue import Heuristic, schedule_named
from pipesched.errors import Deadlock, DoesNotApply
from pipesched.layers.even import even_counts
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps, Ticks
from pipesched.results.plan import PlanCandidate
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.construction.timing import best_times
from solver.parameters import tunable, tuned
from solver.planning.budget import SecondsOrWork
from solver.planning.partitions.balance import balanced, balanced_loads
from solver.planning.partitions.memory_fit import MemoryFit
from solver.planning.partitions.nearby import recut
from solver.planning.partitions.starting import recomputing, starting_partitions
from solver.planning.search.choice_search import ChoiceSearch


@dataclass(frozen=True)
@tunable
class FirstPlansParams:
    """Limit of the first plans of a placement: how many balanced partitions are tried.

    Each leaves free the memory that the schedule of the one before took in excess of the capacity.
    """

    rounds: int = tuned(6, "balanced partitions, each with the memory taken away that the one before lacked", 1, 100)


_PARAMS = FirstPlansParams()


class FirstPlans:
    """First plans of one placement for one published order, called `name`; `order` makes it for a problem.

    `best` is the best plan that fits the memory, None if none was found. `same` is True if the order does not depend on
    the costs of stages.
    """

    def __init__(self, of: ChoiceSearch, name: str, order: Callable[[Problem], Schedule], same: bool) -> None:
        self._of, self._name, self._order = of, name, order
        # When parameters are gathered depends on the memory.
        self._same = same and of.plan.model.parameters.gather is None
        self.best: PlanCandidate | None = None
        self._fitting: set[Partition] = set()

    def run(self, most: SecondsOrWork) -> PlanCandidate | None:
        """Try one partition after the other for at most `most` seconds or work units.

        Return the best plan so far, None if no order applies and fits the memory. Whatever the time, at least one
        partition is tried and, where memory is short, the ones that need the least.
        """
        plan, choice = self._of.plan, self._of.choice
        late, tries = self._of.budget.late(most), self._of.budget.tries(most)
        known = self._without_memory_limit()
        if self._same and known is not None:
            self._order = lambda _: known
        fit = None if known is None or plan.cluster.capacity is None else MemoryFit(plan, choice, known)
        first = balanced_loads(plan, choice, True) if fit is None else balanced(plan, choice, fit)
        self._try(first)
        self._try_even(first)
        if self.best is None and known is not None and fit is not None:
            # The partitions that need least memory are tried whatever the time.
            least = replace(plan, recompute=Decide.ALWAYS) if plan.recompute is Decide.FREE else plan
            self._make_room(least, known, repeat(True))
        if late() or most <= 0:
            return self.best
        for partition in self._starting(known, fit, late):
            if not next(tries, False):
                return self.best
            if partition != first:
                self._try(partition)
        if known is not None and fit is not None:
            for decide in Decide if plan.recompute is Decide.FREE else (plan.recompute,):
                restricted = replace(plan, recompute=decide)
                if not late() and not self._fits(restricted):
                    self._make_room(restricted, known, tries)
        return self.best

    def _try_even(self, first: Partition) -> None:
        """Try the even partition, the default of frameworks, unless it was tried (`first`) or its load is no better."""
        plan, choice = self._of.plan, self._of.choice
        counts = even_counts(plan.model, self._of.stages) if plan.counts is None else None
        if counts is not None:
            even = recomputing(plan, counts, Fraction(0))
            if even != first and self._may_be_better(plan.problem(choice, even)):
                self._try(even)

    def _starting(self, known: Schedule | None, fit: MemoryFit | None, late: Callable[[], bool]) -> Iterator[Partition]:
        """Yield the starting partitions, made before `late()`, that may be better than the best plan.

        Those on which the order lacks least memory, by `fit`, are first, then those of least load. Where it lacks any
        and does not depend on the costs, the partition is left out. `fit` is None where memory is not limited or the
        order does not apply. `known` is the order made without a memory limit, None if it does not apply.
        """
        plan, choice, found = self._of.plan, self._of.choice, list[tuple[Partition, Problem]]()
        for one in starting_partitions(plan, choice, known):
            if late():
                break
            found.append((one, plan.problem(choice, one)))
        lacking = [0 if fit is None else fit.lacking(problem) for _, problem in found]
        loads = [_load(problem) for _, problem in found]
        # An order that does not depend on the costs lacks memory on a partition in any case; others may adapt.
        able = [at for at, lack in enumerate(lacking) if not (lack and self._same)]
        for at in sorted(able, key=lambda at: (lacking[at], loads[at])):
            if self._may_be_better(found[at][1]):
                yield found[at][0]

    def _fits(self, restricted: PlanProblem) -> bool:
        """True if a plan was found whose recomputation the problem `restricted` allows."""
        if restricted.recompute is Decide.FREE:
            return self.best is not None
        return any(recut(restricted, one.counts, one) == one for one in self._fitting)

    def _make_room(self, plan: PlanProblem, known: Schedule, tries: Iterator[bool]) -> None:
        """Try balanced partitions, each with the capacity reduced by what the order exceeded on the one before.

        `known` is the order without a memory limit; `tries` yields True while there is time.
        """
        fit, partition = MemoryFit(plan, self._of.choice, known), None
        for _ in range(_PARAMS.rounds):
            partition = balanced(plan, self._of.choice, fit, partition)
            if not self._may_be_better(plan.problem(self._of.choice, partition)) or not next(tries, False):
                return
            found = self._try(partition)
            # A module's own device is the last, and no partition leaves it more room.
            excess = [] if found is None else _excess(found.timeline)[: plan.cluster.devices]
            if not any(excess):
                return
            fit.reserve(excess)

    def _without_memory_limit(self) -> Schedule | None:
        """Return the order made without a memory limit, on the balanced partition without recomputation.

        None if not applicable.
        """
        never = replace(self._of.plan, recompute=Decide.NEVER)
        try:
            return self._order(self._of.roomy_problem(balanced_loads(never, self._of.choice, True)))
        except DoesNotApply:
            return None

    def _may_be_better(self, problem: Problem) -> bool:
        return self.best is None or _load(problem) * problem.tick < self.best.value

    def _try(self, partition: Partition) -> PlanCandidate | None:
        """Simulate the order on `partition` and offer the plan; return it even if it exceeds the memory.

        None if the order does not apply or deadlocks.
        """
        found = timed(self._of, partition, self._name, self._order)
        if found is not None and self._of.offer(found):
            self._fitting.add(partition)
            self.best = found if self.best is None or found.value < self.best.value else self.best
        return found


def begin(choice: ChoiceSearch, orders: Iterable[Heuristic]) -> str:
    """Make a first plan with the first of these orders (at least one) that applies, in any time limit.

    It is offered to `choice` if it fits the memory. Returns the reason if none applies, else an empty text, even where
    no plan fits.
    """
    reasons = list[str]()
    for one in orders:
        reason = choice.why_not(one.name)
        if reason is None:
            base = one if one.improves is None else schedule_named(one.improves)
            FirstPlans(choice, base.name, base.order, base.same_for_all_costs).run(0)
            return ""
        reasons.append(reason)
    return f"no schedule applies: {reasons[0]}"


def timed(
    of: ChoiceSearch, partition: Partition, name: str, order: Callable[[Problem], Schedule]
) -> PlanCandidate | None:
    """Return the plan with this order on a partition, at its best start times, even if it exceeds the memory.

    `of` is the search of the placement, `order` makes the order for a problem, and `name` is the order's name. None if
    the order does not apply there or deadlocks.
    """
    problem = of.plan.problem(of.choice, partition)
    try:
        return PlanCandidate(of.choice, partition, best_times(problem, order(problem)), name)
    except (Deadlock, DoesNotApply):
        return None


def _load(problem: Problem) -> Ticks:
    """Return a lower bound on the busiest device's work for all micro-batches, in ticks."""
    each = problem.microbatches // len(problem.placement.chains)
    work = [problem.least_work(s) - (stage.blocks.saves or 0) for s, stage in enumerate(problem.stages)]
    return each * max(sum(work[s] for s in own) for own in problem.placement.stages_of)


def _excess(timeline: Timeline) -> list[MemorySteps]:
    """Return by how much each device's peak memory exceeds its capacity, in steps of memory; 0 if it fits."""
    peaks, room = measure(timeline).peak_quanta, timeline.problem.room
    return [0 if most is None else max(0, peak - most) for peak, most in zip(peaks, room, strict=True)]
