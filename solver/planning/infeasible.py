"""Explanation why no plan exists: the device that lacks memory, the amount, and changes that help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from formulations.partition.least_memory import LeastExcess
from pipesched.deadline import ask
from pipesched.errors import BadInput
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.problem.formatting import counted, plain
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.schedule import Schedule
from solver.backends.cp_sat import solve_model
from solver.parameters import tunable, tuned
from solver.planning.budget import Budget
from solver.planning.search.choice_search import ChoiceSearch

ProblemChange = Callable[[PlanProblem], PlanProblem]


@dataclass(frozen=True)
@tunable
class ReasonParams:
    """Time limit for the number of devices that an explanation of why no plan exists gives."""

    devices_seconds: float = tuned(
        1.0,
        "s, for the number of devices that would do",
        0.1,
        100,
        "three examples of 61 to 80 layers on 2 and 4 devices, any order and published ones: 0.02 to 0.6 s",
    )


_PARAMS = ReasonParams()


class Closest(NamedTuple):
    """The partition of a placement whose worst device exceeds its memory by the least amount.

    `device` is that worst device; `needs` and `has` are the memory that it needs and its capacity, in the file's memory
    unit. `recomputed` is the number of layers recomputed. `order` is the published order assumed; None: one micro-batch
    in flight at a time.
    """

    choice: Choice
    device: DeviceId
    needs: Fraction
    has: Fraction
    recomputed: int
    order: Schedule | None = None

    @property
    def lacks(self) -> Fraction:
        return self.needs - self.has


def why_no_plan(plan: PlanProblem, choices: Sequence[ChoiceSearch], budget: Budget) -> str:
    """Return the text that explains why no plan exists: each placement's reason, then the placement closest to fitting.

    `choices` are the searches of the placements. Without capacities it is only each placement's reason. At the end the
    text names changes of the problem with which a plan fits, such as free recomputation or more devices.
    """
    tried = [each for each in choices if each.stages <= plan.model.most_stages and _right_length(plan, each)]
    if plan.cluster.capacity is None or not tried:
        return reasons(choices)
    found = _all(closest(each.plan, each.choice, budget, order) for each in tried for order in _orders(each))
    if not found:
        return reasons(choices)
    best = min(found, key=lambda one: one.lacks)
    more = "".join(_enough(change, words, tried, budget) for change, words in _changes(plan)) + _devices(plan, budget)
    return f"{reasons(choices)}. {_description(plan, best)}{more}"


def reasons(choices: Sequence[ChoiceSearch]) -> str:
    """Return as one text why each placement in `choices` has no plan.

    Placements with the same reason share one clause.
    """
    by_reason: dict[str, list[str]] = {}
    for each in choices:
        by_reason.setdefault(each.reason, []).append(str(each.choice))
    clauses = [f"{' / '.join(names)}: {reason}" for reason, names in by_reason.items()]
    return "; ".join(clauses) or "no placement is allowed"


def _right_length(plan: PlanProblem, search: ChoiceSearch) -> bool:
    """True if a partition given by the user has as many entries as the placement has stages, or none is given."""
    counts = search.plan.counts
    return len(counts) == search.stages if counts is not None else not plan.even


def _orders(search: ChoiceSearch) -> list[Schedule | None]:
    """Return the allowed published orders that apply to this placement; [None] where any order is allowed."""
    names = search.plan.schedules
    return [search.order_of(name) for name in names if search.why_not(name) is None] if names else [None]


def closest(plan: PlanProblem, choice: Choice, budget: Budget, order: Schedule | None = None) -> Closest | None:
    """Return the partition whose worst device exceeds its memory by the least amount, minimised by CP-SAT.

    Memory is what `order` needs, or with None one micro-batch in flight at a time. Devices must have capacities. None
    if CP-SAT found no solution in its time.
    """
    ask()
    model = LeastExcess(plan, choice, order)
    answer = solve_model(model.partitions.cp, budget.for_reason(), budget.stop)
    if not answer.has_solution:
        return None
    assert plan.cluster.capacity is not None
    modules = model.partitions.extra.memory
    needs = [
        max(map(answer.value_of, levels)) * model.partitions.step + own
        for levels, own in zip(model.needs, modules, strict=False)
    ]
    lacks = [need - room for need, room in zip(needs, plan.cluster.capacity, strict=True)]
    device = max(range(len(needs)), key=lambda d: lacks[d])
    partition = model.partitions.partition(answer.value_of)
    recomputed = sum(sum(counts.values()) for counts in partition.recompute_counts())
    return Closest(choice, device, needs[device], plan.cluster.capacity[device], recomputed, order)


def _description(plan: PlanProblem, one: Closest) -> str:
    unit = plan.cluster.memory_unit
    again = f", with {counted(one.recomputed, 'layer')} recomputed" if one.recomputed else ""
    order = "one micro-batch in flight" if one.order is None else f"the order of {one.order.name}"
    return (
        f"Closest is {one.choice}: with {order} device {one.device} needs "
        f"{plain(float(one.needs))} {unit}{again}, and has {plain(float(one.has))}: {plain(float(one.lacks))} {unit} "
        "more on every device would make a plan fit"
    )


def _changes(plan: PlanProblem) -> Iterator[tuple[ProblemChange, str]]:
    """Yield (function, description) for each relaxation of the problem that the file does not allow."""
    if plan.recompute is not Decide.FREE and plan.model.recomputes:
        yield lambda one: replace(one, recompute=Decide.FREE), "recomputation (decide.recompute: free)"
    if plan.recompute is Decide.FREE and plan.recompute_rule is not RecomputeRule.ANY:
        words = "recomputing any layers (decide.recompute_layers: any)"
        yield lambda one: replace(one, recompute_rule=RecomputeRule.ANY), words
    if plan.schedules:
        yield lambda one: replace(one, schedules=()), "another order (schedule: free)"
    if plan.counts is not None or plan.even:
        yield lambda one: replace(one, counts=None), "another partition (partition: free)"


def _enough(change: ProblemChange, words: str, tried: Sequence[ChoiceSearch], budget: Budget) -> str:
    """Return a clause that says if `change` alone would make some plan of a placement in `tried` fit the memory.

    `words` describes the change.
    """
    found = []
    for each in tried:
        own = change(each.plan)
        orders = _orders(each) if own.schedules else [None]
        found += _all(closest(own, each.choice, budget, order) for order in orders)
    fitting = [one for one in found if one.lacks <= 0]
    if not fitting:
        return f"; {words.partition(' (')[0]} alone would not"
    least = min(fitting, key=lambda one: one.recomputed)
    layers = f", with {counted(least.recomputed, 'layer')} recomputed or fewer" if least.recomputed else ""
    return f"; so would {words}{layers}"


def _devices(plan: PlanProblem, budget: Budget) -> str:
    """Return a clause with the number of devices that would make a plan fit the memory; empty if unknown.

    Only for equal devices and a free partition. The number is found by doubling and bisection, so it need not be the
    least: where layers are spread evenly, a larger number of devices may not fit although a smaller one does.
    """
    cluster, capacity = plan.cluster, plan.cluster.capacity or ()
    if cluster.links or cluster.slowness or len({*capacity}) != 1 or plan.counts is not None:
        return ""
    late = budget.late(_PARAMS.devices_seconds)
    few, many, most = cluster.devices, cluster.devices, len(plan.model.cuts) - 1
    while many < most and not late():
        many = min(2 * many, most)
        if _fits(plan, many, budget):
            break
        few = many
    else:
        return "" if late() else "; more devices alone would not"
    while many - few > 1 and not late():
        middle = (few + many) // 2
        few, many = (few, middle) if _fits(plan, middle, budget) else (middle, many)
    return f"; so would {many} devices like these"


def _fits(plan: PlanProblem, devices: int, budget: Budget) -> bool:
    """True if on `devices` equal devices some placement was found to have a partition that fits the memory."""
    wider = replace(plan, cluster=plan.cluster.of_equal(devices))
    for choice in plan.choices:
        with suppress(BadInput):
            search = ChoiceSearch(wider, choice, budget, lambda _: None)
            if search.bound is not None:
                found = _all(closest(search.plan, choice, budget, order) for order in _orders(search))
                if any(one.lacks <= 0 for one in found):
                    return True
    return False


def _all(found: Iterable[Closest | None]) -> list[Closest]:
    return [one for one in found if one is not None]
