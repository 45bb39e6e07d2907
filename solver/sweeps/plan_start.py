"""Plans of neighbouring cells as starts, and the published schedules on a plan's partition."""

from __future__ import annotations

from dataclasses import replace

from heuristics.catalogue import HEURISTICS
from pipesched.errors import Deadlock
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import PlanProblem, placement_from
from pipesched.results.plan import Candidate, Plan
from pipesched.results.solution import Solution, Status
from pipesched.sweeps.outcome import Outcome
from pipesched.sweeps.packed import unpack
from pipesched.validation.validator import validate
from solver.analysis.published_comparison import all_tried
from solver.construction.timing import best_times
from solver.limits import Limits
from solver.sweeps.outcomes import published


def plan_start(problem: PlanProblem, known: Outcome | None) -> Candidate | None:
    """The plan of another cell in this one; None where it is none here, by the validator's word."""
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
    return None if validate(timeline) else Candidate(choice, partition, timeline, chosen["schedule"])


def with_published(known: Outcome, plan: Plan, limits: Limits) -> Outcome:
    """With the published schedules that the cell allows, on the partition and placement that the plan chose."""
    if plan.best is None or plan.interrupted:
        return known
    problem = plan.best.timeline.problem
    tried = all_tried(Solution(problem, Status.FEASIBLE, 0, None), plan.problem.schedules or HEURISTICS.names(), limits)
    return replace(known, published=tuple(map(published, tried.candidates)))
