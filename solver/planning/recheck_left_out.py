"""Recheck of partitions that a search excluded by bounds which the certificate check cannot verify itself."""

from __future__ import annotations

from fractions import Fraction
from threading import Event

from heuristics.catalogue import schedule_named
from pipesched.checking.finding import NotCoveredError, Verdict
from pipesched.checking.plan_check import partition_finding
from pipesched.errors import Disagreement, DoesNotApply
from pipesched.layers.partition import mistakes
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.layers.recompute_rule import why_not_expressible
from pipesched.problem.attainable_spans import simplest
from pipesched.results.evidence import Refutation
from pipesched.results.plan_evidence import SolvedPartition
from pipesched.schedule.rescale import value_of
from pipesched.validation.validator import validate
from solver.backends.recheck_refutation import recheck_refutation
from solver.construction.timing import best_times
from solver.limits import Limits


def may_be_left_out(
    plan: PlanProblem, choice: Choice, bound: Fraction, one: SolvedPartition, limits: Limits, stop: Event
) -> bool | None:
    """Return True if it is proved that no plan with the partition of `one` is below `bound`, in the file's unit.

    False if such a plan was found, or if the check refuses the certificate of the partition. None if the time does not
    suffice, or the last of the following is needed and there is no such search. The proof is the certificate of the
    partition, or that the rule of recomputation excludes it; else, where only published schedules are allowed, their
    simulation; else a CP-SAT search for a schedule below the bound. There is none for a period, or where no model
    covers the problem.
    """
    finding = partition_finding(plan, bound, choice, one)
    if finding.verdict in (Verdict.VERIFIED, Verdict.REFUSED):
        return finding.verdict is Verdict.VERIFIED
    if why_not_expressible(plan.model, one.partition, plan.recompute_rule):
        return True
    if plan.schedules:
        return _published_value(plan, choice, one) >= bound
    problem = plan.problem(choice, one.partition)
    try:
        if plan.objective.repeats:
            raise NotCoveredError("no search for a period ends in a refutation")
        return recheck_refutation(problem, simplest(bound / problem.tick), Refutation(None), limits, stop)
    except Disagreement:
        return False
    except NotCoveredError:
        return None


def is_partition(plan: PlanProblem, one: SolvedPartition) -> bool:
    """True if a solved partition is a valid one of the plan's model, so that it may be excluded from the search."""
    return not mistakes(plan.model, one.partition)


def _published_value(plan: PlanProblem, choice: Choice, one: SolvedPartition) -> Fraction | float:
    """Return the least value of the allowed published schedules that apply and fit the memory.

    Infinite if there is none. In the file's unit of time.
    """
    problem, values = plan.problem(choice, one.partition), list[Fraction]()
    for name in plan.schedules:
        try:
            timeline = best_times(problem, schedule_named(name).order(problem))
        except DoesNotApply:
            continue
        if not validate(timeline):
            values.append(Fraction(value_of(problem, timeline)) * problem.tick)
    return min(values, default=float("inf"))
