"""Sensitivity to changes of model or hardware: each changed plan problem is planned again, over all its placements.

The search starts from the best plan. Its result is a plan of the changed problem with a lower bound. Where a change can
save at most a known time, the old bound minus that time is also a bound of the changed problem. A problem with variants
is changed in all of them, since after a change another one may be the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Event
from typing import NamedTuple

from pipesched.layers.cluster import Cluster
from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import PlanProblem
from pipesched.layers.vocabulary import is_vocabulary, shared_of, sharing
from pipesched.problem.formatting import plain
from pipesched.results.plan import Plan
from solver.limits import Limits
from solver.planning.plan import plan

_FASTER = Fraction(9, 10)
_MORE_MEMORY = Fraction(11, 10)
# In these units memory grows by this amount, in others by the share above.
_GIBIBYTES, _MORE_GIBIBYTES = ("GiB", "GB"), 8


@dataclass(frozen=True)
class ChangeResult:
    """A change of the problem in words, the plan found for the changed problem, and a lower bound.

    The bound is in the file's time unit. `slower` is True if the change can only cost time; otherwise it can only save
    time.
    """

    text: str
    plan: Plan
    lower_bound: Fraction
    slower: bool

    @property
    def optimal(self) -> bool:
        return self.plan.value == self.lower_bound

    def brings(self, without: Plan) -> tuple[Fraction, Fraction] | None:
        """Return the least and the greatest relative change of the optimum, by the values and bounds of both problems.

        Negative: time is saved. `without` is the plan of the problem before the change. None where the value of either
        problem, or the bound of `without`, is unknown or 0.
        """
        now, before = self.plan.value, without.value
        if not now or not before or not without.lower_bound:
            return None
        least, most = self.lower_bound / before - 1, now / without.lower_bound - 1
        zero = Fraction(0)
        return (max(least, zero), max(most, zero)) if self.slower else (min(least, zero), min(most, zero))


class Changed(NamedTuple):
    """A problem after one change, which `text` describes.

    The change saves at most `saves` in the file's time unit; 0: it can only cost time, None: unknown.
    """

    text: str
    problem: PlanProblem
    saves: Fraction | None = None


def changed_problems(problem: PlanProblem) -> Iterator[Changed]:
    """Yield the problem after one change each: last layer faster, more memory, shared vocabulary, links slower.

    The passes of every layer with the last one's name take 10 % less time; each device has 8 GiB or GB, in other units
    10 %, more memory; embedding and head are split over all devices; links are half as fast. All but the first are left
    out where they do not apply.
    """
    last = problem.model.layers[-1]
    every = f"every {last.name}" if sum(one.name == last.name for one in problem.model.sequence) > 1 else last.name
    yield Changed(f"{every} 10 % faster", _everywhere(problem, _with_faster_last), _saved(problem, last))
    capacity = problem.cluster.capacity
    if capacity is not None:
        unit, before = problem.cluster.memory_unit, max(capacity)
        added = plain(float(_more(before, unit, problem.resolution) - before))
        roomier = _everywhere(problem, lambda one: _on_clusters(one, lambda own: _roomier(own, one.resolution)))
        yield Changed(f"{added} {unit} more memory on every device", roomier)
    # Modules, which shared layers are, have no period.
    alone = not (problem.may_have_modules or problem.objective.repeats or problem.model.overlaps)
    several = any(is_vocabulary(layer.name) for layer in problem.model.layers[1:])
    if alone and several and not problem.parts and problem.cluster.transfer_stream is None:
        yield from _with_shared_vocabulary(problem)
    if problem.cluster.longest_lag:
        halved = _everywhere(problem, lambda one: _on_clusters(one, _with_half_the_speed_of_links))
        yield Changed("links half as fast", halved, Fraction(0))


def _everywhere(problem: PlanProblem, change: Callable[[PlanProblem], PlanProblem]) -> PlanProblem:
    """Return the problem after a change of it and of each of the problems that it consists of."""
    parts = tuple(_everywhere(part, change) for part in problem.parts)
    return replace(change(problem), parts=parts)


def _on_clusters(problem: PlanProblem, change: Callable[[Cluster], Cluster]) -> PlanProblem:
    """Return the problem after a change of its cluster, or of all that it may use."""
    clusters = tuple((name, change(one)) for name, one in problem.clusters)
    return replace(problem, cluster=change(problem.cluster), clusters=clusters)


def _clusters(problem: PlanProblem) -> Iterator[Cluster]:
    """Yield the cluster of a problem and all others that it may use."""
    yield problem.cluster
    yield from (one for _, one in problem.clusters)


def _with_half_the_speed_of_links(cluster: Cluster) -> Cluster:
    links = tuple(tuple(lag * 2 for lag in row) for row in cluster.links)
    return replace(cluster, transfer=cluster.transfer * 2, links=links)


def _roomier(cluster: Cluster, step: Fraction) -> Cluster:
    """Return the cluster with more memory on every device, rounded down to a multiple of `step`."""
    assert cluster.capacity is not None
    return replace(cluster, capacity=tuple(_more(room, cluster.memory_unit, step) for room in cluster.capacity))


def _more(room: Fraction, unit: str, step: Fraction) -> Fraction:
    return _whole(room + _MORE_GIBIBYTES if unit in _GIBIBYTES else room * _MORE_MEMORY, step)


def _with_shared_vocabulary(problem: PlanProblem) -> Iterator[Changed]:
    """Yield the problem with embedding and head split over all devices; nothing if no placement of it allows that."""
    # Published orders have no passes for shared modules.
    shared = sharing(replace(problem, schedules=()))
    able = tuple(choice for choice in problem.choices if shared.allows(choice))
    if able:
        names = " and ".join(dict.fromkeys(layer.name for layer in shared_of(shared)))
        free = ", in any order" if problem.schedules else ""
        yield Changed(f"{names} in equal parts on all devices{free}", replace(shared, choices=able))


def sensitivity(found: Plan, limits: Limits, stop: Event | None = None) -> list[ChangeResult]:
    """Return, for each of `changed_problems` of a plan, the best plan found after that change, the fastest first.

    Each is planned with an equal share of `limits`; those not begun when `stop` is set are missing, and those for which
    no plan was found are last.
    """
    problems = list(changed_problems(found.asked or found.problem))
    work = None if limits.deterministic is None else limits.deterministic / len(problems)
    each = replace(limits, seconds=limits.seconds / len(problems), deterministic=work)
    changes = []
    for text, problem, saves in problems:
        if stop is None or not stop.is_set():
            made = plan(problem, each, stop=stop, start=found.best)
            bound = made.lower_bound if saves is None else max(made.lower_bound, found.lower_bound - saves)
            changes.append(ChangeResult(text, made, bound, slower=saves == 0))
    return sorted(changes, key=lambda one: (one.plan.value is None, one.plan.value or 0))


def _faster(layer: LayerType) -> LayerType:
    """Return the layer with the times of its passes (forward, backward, weight, fused, overlapped) multiplied by 0.9.

    None stays None. The times of recomputation and of work for its parameters stay as they are.
    """
    return replace(
        layer,
        forward=layer.forward * _FASTER,
        backward=layer.backward * _FASTER,
        weight=None if layer.weight is None else layer.weight * _FASTER,
        fused=None if layer.fused is None else layer.fused * _FASTER,
        overlapped=None if layer.overlapped is None else layer.overlapped * _FASTER,
    )


def _saved(problem: PlanProblem, layer: LayerType) -> Fraction:
    """Return the most time that a faster `layer` can save, in the file's unit.

    That is a tenth of all its passes, on the slowest device.
    """
    number = sum(one.name == layer.name for one in problem.model.sequence)
    longest = max(layer.full_backward, layer.backward + (layer.weight or 0))
    slowest = max((each for own in _clusters(problem) for each in own.slowness), default=Fraction(1))
    return problem.microbatches * number * (1 - _FASTER) * (layer.forward + longest) * max(slowest, Fraction(1))


def _with_faster_last(problem: PlanProblem) -> PlanProblem:
    last = problem.model.layers[-1].name
    layers = tuple(_faster(one) if one.name == last else one for one in problem.model.layers)
    model = replace(problem.model, layers=layers)
    return replace(problem, model=model, tick=problem.tick / _FASTER.denominator)


def _whole(amount: Fraction, step: Fraction) -> Fraction:
    return amount // step * step
