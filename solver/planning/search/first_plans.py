"""The first plans of a placement: those that its narrower restrictions begin with, so that more freedom is never worse.

Partitions are the balanced and the even one. Of the layers that can be recomputed none, a share of each stage, or all
are, as `recompute: never` and `always` have it. Each is simulated once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import ceil

from pipesched.errors import DoesNotApply
from pipesched.layers.even import even_counts
from pipesched.layers.layer import LayerType, RecomputeWay
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.problem.problem import Problem
from pipesched.results.plan import Candidate
from pipesched.schedule.schedule import Schedule
from solver.construction.timing import best_times
from solver.planning.joint.told import told
from solver.planning.partitions.balance import balanced
from solver.planning.partitions.memory_fit import MemoryFit
from solver.planning.partitions.nearby import recut
from solver.planning.search.choice_search import ChoiceSearch

# Shares of a stage's layers that are recomputed, all of them second: that fits where anything does.
_SHARES = (Fraction(0), Fraction(1), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


def first_plans(of: ChoiceSearch, name: str, order: Callable[[Problem], Schedule]) -> Candidate | None:
    """Offer the first plans with an order of this name; the best of them, None where none of them fits."""
    found = list[Candidate]()
    for counts in _counts(of, order):
        for share in _SHARES:
            if found and of.budget.over():
                break
            partition = recomputing(of.plan, counts, share)
            candidate = tried(of, partition, name, order)
            if candidate is not None:
                found.append(candidate)
                if share < 1:
                    break
            elif of.plan.recompute is not Decide.FREE:
                break
    return min(found, key=lambda each: each.value, default=None)


def tried(of: ChoiceSearch, partition: Partition, name: str, order: Callable[[Problem], Schedule]) -> Candidate | None:
    """The order on a partition, offered; None where there is none that fits."""
    problem = of.plan.problem(of.choice, partition)
    try:
        candidate = Candidate(of.choice, partition, best_times(problem, order(problem)), name)
    except DoesNotApply:
        return None
    return candidate if of.offer(candidate) else None


def recomputing(plan: PlanProblem, counts: tuple[int, ...], share: Fraction) -> Partition:
    """So many layers on each stage, of each type this share recomputed in the way that keeps least."""
    if plan.recompute is not Decide.FREE:
        return recut(plan, counts, Partition(counts))
    rows = []
    for layers in Partition(counts).layers_of(plan.model):
        held = Counter(layer.alone for layer in layers if layer.recompute)
        rows.append(
            tuple(
                Recomputed(layer.name, _least(layer).name, ceil(share * number))
                for layer, number in held.items()
                if share
            )
        )
    return told(plan, Partition(counts, tuple(rows) if any(rows) else ()))


def _least(layer: LayerType) -> RecomputeWay:
    return min(layer.recompute, key=lambda way: (way.keeps, way.time))


def _counts(of: ChoiceSearch, order: Callable[[Problem], Schedule]) -> Iterator[tuple[int, ...]]:
    """Layers of each stage: balanced, balanced with what the order has to recompute, and even."""
    plan, seen = of.plan, set[tuple[int, ...]]()

    def fresh(counts: tuple[int, ...] | None) -> Sequence[tuple[int, ...]]:
        if counts is None or counts in seen:
            return ()
        seen.add(counts)
        return (counts,)

    if plan.counts is not None:
        yield plan.counts
        return
    yield from fresh(of.balanced.counts)
    if plan.cluster.capacity is not None:
        try:
            fit = MemoryFit(plan, of.choice, order(of.roomy_problem(of.balanced)))
            yield from fresh(balanced(plan, of.choice, fit).counts)
        except DoesNotApply:
            pass
    yield from fresh(even_counts(plan.model, of.stages))
