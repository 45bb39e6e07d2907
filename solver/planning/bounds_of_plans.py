"""Lower bounds over all plans of a plan problem: the mean load, and the bounds of two searches combined."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from formulations.partition.bound_rows import mean_load
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.attainable_spans import simplest
from pipesched.problem.formatting import plain
from pipesched.results.certificate import Certificate
from pipesched.results.plan import ChoiceResult, Plan
from pipesched.results.plan_evidence import MeanLoad
from pipesched.results.solution import Status

KIND = "exhaustive search over all partitions"


def of_all(problem: PlanProblem) -> str:
    """Return the beginning of a certificate's sentence: which plans a bound over all partitions covers."""
    return "Of all plans" if problem.model.empty_stages else "Of all plans with a layer on every stage"


def by_load(problem: PlanProblem) -> tuple[ChoiceResult, ...]:
    """Return for each of `problem.choices` a result without a plan, whose bound is the mean work of a device.

    Devices count by their speed. The bound is in the file's time unit, and needs no search.
    """
    return tuple(
        ChoiceResult(choice, mean_load(problem, choice) * problem.tick, evidence=MeanLoad())
        for choice in problem.choices
    )


def with_bounds_of(narrow: Plan, wide: Plan) -> Plan:
    """Return the plan `narrow` with the lower bound of `wide` for each placement where that is higher.

    `wide` is the result of a search over all plans of `narrow` and more, so its bounds are valid for both. The
    certificate and the status are updated. Where either result consists of variants, `narrow` is returned unchanged.
    """
    if narrow.variants or wide.variants:
        return narrow
    known = {each.choice: each for each in wide.choices}
    choices = tuple(_higher(each, known.get(each.choice)) for each in narrow.choices)
    bounds = [each.lower_bound for each in choices if each.lower_bound is not None]
    least = min([*bounds, *([] if narrow.best is None else [narrow.best.value])], default=None)
    if choices == narrow.choices or least is None or narrow.certificate is None:
        return narrow
    clauses = [
        f"{each.choice}: {lower_bound_clause(narrow.problem, each.lower_bound)}" for each in choices if each.lower_bound
    ]
    certificate = Certificate(
        KIND, simplest(least / narrow.problem.tick), f"{of_all(narrow.problem)}: {'; '.join(clauses)}."
    )
    status = narrow.status
    if narrow.best is not None:
        status = Status.OPTIMAL if narrow.best.value == least else Status.FEASIBLE
    return replace(narrow, status=status, certificate=certificate, choices=choices)


def _higher(narrow: ChoiceResult, wide: ChoiceResult | None) -> ChoiceResult:
    """Return the placement's result `narrow` with the bound of `wide` where that is higher.

    A `wide.lower_bound` of None means that the placement was proved to have no plan: then `wide` itself is returned, or
    `narrow` if it has a plan. Without `wide`, or if `narrow` has no bound, `narrow` is returned.
    """
    if wide is None or narrow.lower_bound is None:
        return narrow
    if wide.lower_bound is None:
        return wide if narrow.best is None else narrow
    if wide.lower_bound <= narrow.lower_bound:
        return narrow
    return replace(narrow, lower_bound=wide.lower_bound, evidence=wide.evidence)


def lower_bound_clause(problem: PlanProblem, bound: Fraction) -> str:
    """Return a clause that no plan has a value below `bound`, in the file's time unit: `none is below 3.5 ms`."""
    return f"none is below {plain(float(bound))} {problem.time_unit}".rstrip()
