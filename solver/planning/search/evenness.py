"""Walk from the best plan to more even plans of equal or lower value, and then to those with lower memory peaks.

The value has priority. Among plans of equal value the one with fewer stages as long as the longest is preferred, which
leaves slack for costs that were not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from heuristics.building.patience import patience
from heuristics.catalogue import schedule_named
from pipesched.deadline import expired
from pipesched.errors import BadInput, Deadlock, DoesNotApply
from pipesched.layers.partition import Partition
from pipesched.layers.recompute_rule import why_not_expressible
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.plan import PlanCandidate
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.validation.validator import validate
from solver.construction.timing import best_times
from solver.parameters import tunable, tuned
from solver.planning.joint.draft import StageSums
from solver.planning.partitions.nearby import nearby
from solver.planning.search.choice_search import ChoiceSearch


@dataclass(frozen=True)
@tunable
class EvennessParams:
    """Limit of the walk to more even plans: how many are simulated."""

    steps: int = tuned(200, "plans simulated", 1, 10**5)


EVENNESS = EvennessParams()


_Key = tuple[Fraction, tuple[int, ...], tuple[int, ...]]


def evened(of: ChoiceSearch, best: PlanCandidate) -> Iterator[PlanCandidate]:
    """Yield more and more even plans, found by a walk from `best` over adjacent partitions that never gets worse.

    `of` is the search of their placement, which does not get them. At most `EVENNESS.steps` partitions are simulated.
    """
    problem = best.timeline.problem
    left = EVENNESS.steps
    sums = StageSums(of.plan, of.plan.slowness_of_places(problem.placement))
    over: Callable[[], bool] = lambda: expired() or of.budget.stop.is_set()  # noqa: E731
    now, key, looked = best, _key(sums, best), {best.partition}
    moved = True
    while moved:
        moved = False
        for partition in nearby(of.plan, now.partition):
            if partition in looked:
                continue
            if left <= 0 or over():
                return
            looked.add(partition)
            # Less even partitions are not simulated.
            if _works(sums, partition) > key[1]:
                continue
            left -= 1
            with patience(over):
                found = _tried(of, partition, now)
            if found is not None and (other := _key(sums, found)) < key and _is_valid(of, found):
                now, key, moved = found, other, True
                yield now
                break


def _key(sums: StageSums, candidate: PlanCandidate) -> _Key:
    """Return what the walk minimises, in this order: value, stages' work, devices' memory peaks.

    Work and peaks are in descending order.
    """
    peaks = tuple(sorted(measure(candidate.timeline).peak_quanta, reverse=True))
    return candidate.value, _works(sums, candidate.partition), peaks


def _works(sums: StageSums, partition: Partition) -> tuple[Ticks, ...]:
    """Return the least work of one micro-batch on each stage of a chain in ticks, in descending order."""
    forward, backward, weight, full = sums.costs(sums.of_partition(partition)).ticks
    return tuple(sorted((forward + np.minimum(full, backward + weight)).tolist(), reverse=True))


def _tried(of: ChoiceSearch, partition: Partition, like: PlanCandidate) -> PlanCandidate | None:
    problem = of.plan.problem(of.choice, partition)
    order: Callable[[Problem], Schedule] = lambda _: like.timeline.schedule  # noqa: E731
    if of.plan.schedules and not schedule_named(like.schedule).same_for_all_costs:
        order = schedule_named(like.schedule).order
    try:
        timeline = best_times(problem, order(problem))
    except (BadInput, Deadlock, DoesNotApply):
        return None
    return PlanCandidate(of.choice, partition, timeline, like.schedule)


def _is_valid(of: ChoiceSearch, found: PlanCandidate) -> bool:
    expressible = why_not_expressible(of.plan.model, found.partition, of.plan.recompute_rule) is None
    return expressible and not validate(found.timeline)
