"""What changes of model or hardware would bring: the bound of a changed plan problem, and its best partition's time.

Each change is planned for a short time from the best plan; what is found is a plan, and its bound holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Event

from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain
from pipesched.results.plan import Plan
from solver.limits import Limits
from solver.planning.plan import plan

_FASTER = Fraction(9, 10)
_MORE_MEMORY = Fraction(11, 10)


@dataclass(frozen=True)
class Change:
    """A change in words, and the plan found with it."""

    text: str
    plan: Plan


def changed_problems(problem: PlanProblem, choice_of: Plan) -> Iterator[tuple[str, PlanProblem]]:
    """The problems after one change each, on the placement of the best plan."""
    assert choice_of.best is not None
    own = replace(problem, choices=(choice_of.best.choice,))
    last = problem.model.layers[-1]
    yield f"{last.name} 10 % faster", _with_last(own, _faster(last))
    capacity = problem.cluster.capacity
    if capacity is not None:
        more = tuple(_whole(room * _MORE_MEMORY, problem.resolution) for room in capacity)
        added = plain(float(max(more) - max(capacity)))
        text = f"{added} {problem.cluster.memory_unit} more memory on a device"
        yield text, replace(own, cluster=replace(problem.cluster, capacity=more))
    if problem.cluster.transfer or problem.cluster.links:
        halved = replace(
            problem.cluster,
            transfer=problem.cluster.transfer * 2,
            links=tuple(tuple(lag * 2 for lag in row) for row in problem.cluster.links),
        )
        yield "links half as fast", replace(own, cluster=halved)


def sensitivity(found: Plan, limits: Limits, stop: Event | None = None) -> list[Change]:
    """The changes in turn, each with an equal share of the limits."""
    problems = list(changed_problems(found.problem, found))
    each = replace(limits, seconds=limits.seconds / len(problems))
    changes = []
    for text, problem in problems:
        if stop is None or not stop.is_set():
            changes.append(Change(text, plan(problem, each, stop=stop, start=found.best)))
    return changes


def _faster(layer: LayerType) -> LayerType:
    """Times of nine tenths; the tick is made finer by as much."""
    return replace(
        layer,
        forward=layer.forward * _FASTER,
        backward=layer.backward * _FASTER,
        weight=None if layer.weight is None else layer.weight * _FASTER,
        fused=None if layer.fused is None else layer.fused * _FASTER,
    )


def _with_last(problem: PlanProblem, last: LayerType) -> PlanProblem:
    layers = tuple(last if one.name == last.name else one for one in problem.model.layers[:-1])
    model = replace(problem.model, layers=(*layers, last))
    return replace(problem, model=model, tick=problem.tick / _FASTER.denominator)


def _whole(amount: Fraction, step: Fraction) -> Fraction:
    return amount // step * step
