"""Why there is no plan: the device that lacks memory, by how much, and what would make a plan fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from formulations.partition.least_memory import LeastExcess
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from pipesched.problem.formatting import counted, plain
from solver.backends.cp_sat import solve_model
from solver.planning.budget import Budget
from solver.planning.choice_search import ChoiceSearch


class Closest(NamedTuple):
    """The partition of a placement that lacks least memory on its worst device: the device, what it needs and has."""

    choice: Choice
    device: int
    needs: Fraction
    has: Fraction
    recomputed: int

    @property
    def lacks(self) -> Fraction:
        return self.needs - self.has


def why_no_plan(plan: PlanProblem, choices: Sequence[ChoiceSearch], budget: Budget) -> str:
    """The reason of every placement, and of the one that comes closest what it lacks."""
    reasons = "; ".join(f"{each.choice}: {each.reason}" for each in choices) or "no placement is allowed"
    tried = [each.choice for each in choices if each.stages <= plan.model.most_stages]
    if plan.cluster.capacity is None or not tried or plan.schedules:
        return reasons
    found = [one for choice in tried for one in [closest(plan, choice, budget)] if one is not None]
    if not found:
        return reasons
    best = min(found, key=lambda one: one.lacks)
    return f"{reasons}. {_said(plan, best)}{_with_recomputation(plan, tried, budget)}"


def closest(plan: PlanProblem, choice: Choice, budget: Budget) -> Closest | None:
    """The partition whose worst device lacks least, by CP-SAT; None where none was found in time."""
    model = LeastExcess(plan, choice)
    answer = solve_model(model.partitions.cp, budget.for_reason(), budget.stop)
    if not answer.has_solution:
        return None
    assert plan.cluster.capacity is not None
    needs = [answer.value_of(each) * model.partitions.step for each in model.needs]
    lacks = [need - room for need, room in zip(needs, plan.cluster.capacity, strict=True)]
    device = max(range(len(needs)), key=lambda d: lacks[d])
    partition = model.partitions.partition(answer.value_of)
    recomputed = sum(sum(counts.values()) for counts in partition.recompute_counts())
    return Closest(choice, device, needs[device], plan.cluster.capacity[device], recomputed)


def _said(plan: PlanProblem, one: Closest) -> str:
    unit = plan.cluster.memory_unit
    again = f", with {counted(one.recomputed, 'layer')} recomputed" if one.recomputed else ""
    return (
        f"Closest is {one.choice}: with one micro-batch in flight device {one.device} needs "
        f"{plain(float(one.needs))} {unit}{again}, and has {plain(float(one.has))}: {plain(float(one.lacks))} {unit} "
        "more on every device would make a plan fit"
    )


def _with_recomputation(plan: PlanProblem, tried: Sequence[Choice], budget: Budget) -> str:
    """Whether recomputation, where it was not allowed, would be enough."""
    if plan.recompute is Decide.FREE or not plan.model.recomputes:
        return ""
    free = replace(plan, recompute=Decide.FREE)
    found = [one for choice in tried for one in [closest(free, choice, budget)] if one is not None and one.lacks <= 0]
    if not found:
        return "; recomputation alone would not"
    least = min(found, key=lambda one: one.recomputed)
    return f"; so would recomputation (decide.recompute: free), of {counted(least.recomputed, 'layer')} or fewer"
