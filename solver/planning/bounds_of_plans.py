"""Bounds over all plans of a problem that several searches proved, or that need none, as one result says them."""

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
OF_ALL = "Of all plans with a layer on every stage"


def by_load(problem: PlanProblem) -> tuple[ChoiceResult, ...]:
    """The bound of each placement before a search: the work of the model, spread over the devices."""
    return tuple(
        ChoiceResult(choice, mean_load(problem, choice) * problem.tick, evidence=MeanLoad())
        for choice in problem.choices
    )


def with_bounds_of(narrow: Plan, wide: Plan) -> Plan:
    """A plan with the bounds of a search that allowed all that its own does, where these are higher.

    Of variants each has its own, and the plan as it is.
    """
    if narrow.variants or wide.variants:
        return narrow
    known = {each.choice: each for each in wide.choices}
    choices = tuple(_higher(each, known.get(each.choice)) for each in narrow.choices)
    bounds = [each.lower_bound for each in choices if each.lower_bound is not None]
    least = min([*bounds, *([] if narrow.best is None else [narrow.best.value])], default=None)
    if choices == narrow.choices or least is None or narrow.certificate is None:
        return narrow
    said = [f"{each.choice}: {none_below(narrow.problem, each.lower_bound)}" for each in choices if each.lower_bound]
    certificate = Certificate(KIND, simplest(least / narrow.problem.tick), f"{OF_ALL}: {'; '.join(said)}.")
    status = narrow.status
    if narrow.best is not None:
        status = Status.OPTIMAL if narrow.best.value == least else Status.FEASIBLE
    return replace(narrow, status=status, certificate=certificate, choices=choices)


def _higher(narrow: ChoiceResult, wide: ChoiceResult | None) -> ChoiceResult:
    """The result of a placement with the bound of another one where it is higher; where that has no plan, none."""
    if wide is None or narrow.lower_bound is None:
        return narrow
    if wide.lower_bound is None:
        return wide if narrow.best is None else narrow
    if wide.lower_bound <= narrow.lower_bound:
        return narrow
    return replace(narrow, lower_bound=wide.lower_bound, evidence=wide.evidence)


def none_below(problem: PlanProblem, bound: Fraction) -> str:
    """A bound in the file's unit, as a sentence."""
    return f"none is below {plain(float(bound))} {problem.time_unit}".rstrip()
