"""Plans of neighbouring cells as starts of plan searches, and the published schedules on a plan's partition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Event

from heuristics.catalogue import HEURISTICS
from pipesched.errors import Deadlock
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import PlanProblem, placement_from
from pipesched.results.plan import Plan, PlanCandidate
from pipesched.results.solution import Solution, Status
from pipesched.sweeps.outcome import Outcome, PublishedResult
from pipesched.sweeps.packed import unpack
from pipesched.validation.validator import validate
from solver.analysis.published_comparison import all_tried
from solver.construction.timing import best_times
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.planning.schedule_comparison import compared_schedules
from solver.sweeps.outcomes import published, published_timeline


@dataclass(frozen=True)
@tunable
class PlanStartParams:
    """Time for the published schedules in a cell of a sweep over plans."""

    published_share: float = tuned(0.2, "of the limit, for published schedules on partitions of their own", 0, 1)


_PARAMS = PlanStartParams()


def plan_start(problem: PlanProblem, known: Outcome | None) -> PlanCandidate | None:
    """Return the plan of the outcome `known` of another cell, timed with the costs of `problem`, this cell's.

    None if there is no outcome or no plan in it, or its placement is not allowed or its schedule not valid here.
    """
    if known is None or known.schedule is None or known.choice is None:
        return None
    chosen = known.choice
    choice = placement_from(chosen)
    if choice not in problem.choices:
        return None
    recompute = tuple(tuple(Recomputed(*one) for one in stage) for stage in chosen["recompute"])
    partition = Partition(tuple(chosen["partition"]), recompute)
    try:
        timeline = best_times(problem.problem(choice, partition), unpack(known.schedule).timeline.schedule)
    except (Deadlock, KeyError, IndexError):
        return None
    return None if validate(timeline) else PlanCandidate(choice, partition, timeline, chosen["schedule"])


def with_published(
    plan: Plan, problem: PlanProblem, limits: Limits, stop: Event
) -> tuple[Plan, tuple[PublishedResult, ...]]:
    """Return the plan, and the results of the published schedules that the cell allows, sorted by name.

    Each schedule has a partition of its own or, if better, the plan's partition. A schedule that is better than the
    plan becomes the plan. There are none for a period, for free memory, which published schedules do not maximise, or
    without a plan.
    """
    if plan.best is None or problem.objective.repeats or problem.leaves is not None:
        return plan, ()
    names = problem.schedules or HEURISTICS.names()
    here = Solution(plan.best.timeline.problem, Status.FEASIBLE, 0, None)
    tried = all_tried(here, names, limits).candidates
    found = {one.name: published(one) for one in tried}
    plans = [
        PlanCandidate(plan.best.choice, plan.best.partition, one.timeline, one.name)
        for one in tried
        if one.fits and one.timeline is not None and one.timeline.problem == here.problem
    ]
    work = None if limits.deterministic is None else _PARAMS.published_share * limits.deterministic
    part = replace(limits, seconds=_PARAMS.published_share * limits.seconds, deterministic=work)
    rows = compared_schedules(
        problem, {name: (name,) for name in names}, None, part, lambda _: None, stop, elsewhere=False
    )
    for row in (row for row in rows if row.best is not None):
        assert row.best is not None
        own = published_timeline(row.name, row.best.timeline, row.fits)
        found[row.name] = min(found[row.name], own, key=_rank)
        plans += [row.best] if row.fits else []
    best = min([plan.best, *plans], key=lambda one: one.value)
    if best is not plan.best:
        status = Status.OPTIMAL if best.value == plan.lower_bound else Status.FEASIBLE
        plan = replace(plan, best=best, status=status)
    return plan, tuple(found.values())


def _rank(one: PublishedResult) -> tuple[bool, bool, Fraction]:
    return one.value is None, not one.fits, one.value or Fraction(0)
