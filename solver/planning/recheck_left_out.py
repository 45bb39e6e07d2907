"""Partitions that a search left out by bounds that the check does not verify: their orders searched once more."""

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
    """True if no plan with this partition is below the bound; None where the proof did not end.

    By its own certificate, else by the published schedules where only such are allowed, else by CP-SAT's search.
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
        return recheck_refutation(problem, simplest(bound / problem.tick), Refutation(None), limits, stop)
    except Disagreement:
        return False
    except NotCoveredError:
        return None


def is_partition(plan: PlanProblem, one: SolvedPartition) -> bool:
    """True if a search over all partitions can meet it."""
    return not mistakes(plan.model, one.partition)


def _published_value(plan: PlanProblem, choice: Choice, one: SolvedPartition) -> Fraction | float:
    """The least of the published schedules that are allowed, apply and fit; infinite where there is none."""
    problem, values = plan.problem(choice, one.partition), list[Fraction]()
    for name in plan.schedules:
        try:
            timeline = best_times(problem, schedule_named(name).order(problem))
        except DoesNotApply:
            continue
        if not validate(timeline):
            values.append(Fraction(value_of(problem, timeline)) * problem.tick)
    return min(values, default=float("inf"))
