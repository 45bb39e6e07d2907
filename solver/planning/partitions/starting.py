"""Partitions with which a search begins, with those of narrower problems, so that more freedom never gives worse plans.

The layers are balanced by load, balanced with the recomputation that an order needs, or spread evenly. Of the layers
that can be recomputed none, a share of each stage, or all are, and each stricter rule is applied too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil

from pipesched.layers.even import even_counts
from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.schedule.schedule import Schedule
from solver.planning.joint.expressible import made_expressible
from solver.planning.partitions.balance import balanced, balanced_loads
from solver.planning.partitions.memory_fit import MemoryFit
from solver.planning.partitions.nearby import recut

# Shares of a stage's layers that are recomputed.
_SHARES = (Fraction(0), Fraction(1), *(Fraction(quarters, 4) for quarters in (1, 2, 3)))
_RULES = tuple(RecomputeRule)


def restrictions(plan: PlanProblem, choice: Choice) -> list[PlanProblem]:
    """Return the plan problem itself, then narrower ones.

    Where recomputation is free, these recompute never, always, or by each stricter rule. Then all so far, the problem
    itself included, come once more with an even partition, if the layers divide evenly and their numbers are free.
    """
    found = [plan]
    if plan.recompute is Decide.FREE:
        found += [replace(plan, recompute=decide) for decide in (Decide.NEVER, Decide.ALWAYS)]
        rules = _RULES[_RULES.index(plan.recompute_rule) + 1 :] if plan.model.recomputes else ()
        found += [replace(plan, recompute_rule=rule) for rule in rules]
    even = even_counts(plan.model, len(choice.on(plan.cluster.devices).chains[0]))
    if plan.counts is None and even is not None:
        found += [replace(one, counts=even) for one in found]
    return found


def starting_partitions(plan: PlanProblem, choice: Choice, order: Schedule | None) -> Iterator[Partition]:
    """Yield each starting partition once, those of the unrestricted problem first.

    `order` is a schedule made without regard to memory, or None where none is known.
    """
    found = set[Partition]()
    for partition in _all(plan, choice, order):
        if partition not in found:
            found.add(partition)
            yield partition


def _all(plan: PlanProblem, choice: Choice, order: Schedule | None) -> Iterator[Partition]:
    known: dict[tuple[Decide, tuple[int, ...] | None], list[Partition]] = {}
    for one in restrictions(plan, choice):
        # The balanced cuts do not depend on the rule of recomputation.
        key = one.recompute, one.counts
        if key not in known:
            known[key] = _balanced(replace(one, recompute_rule=RecomputeRule.ANY), choice, order)
        # Without recomputation, or where nothing is free about it, all shares give the same partition.
        shares = _SHARES if one.recompute is Decide.FREE and one.model.recomputes else _SHARES[:1]
        for counts in dict.fromkeys(partition.counts for partition in known[key]):
            yield from (recomputing(one, counts, share) for share in shares)
        yield from (made_expressible(one, partition) for partition in known[key])


def _balanced(plan: PlanProblem, choice: Choice, order: Schedule | None) -> list[Partition]:
    """Return balanced partitions, with and without the paths to devices in the loads.

    Where memory is limited, also those with the recomputation that `order` needs.
    """
    found = [balanced_loads(plan, choice, ends) for ends in (True, False)]
    if order is None or plan.cluster.capacity is None:
        return found
    fit = MemoryFit(plan, choice, order)
    roomy, roomy_of_loads = (balanced(plan, choice, fit, ends=ends) for ends in (True, False))
    return [found[0], roomy, found[1], roomy_of_loads]


def recomputing(plan: PlanProblem, counts: tuple[int, ...], share: Fraction) -> Partition:
    """Return the partition of `counts` layers per stage that recomputes `share` of a stage's layers of every type.

    Their number is rounded up, and they are recomputed in the mode that keeps the least memory, and then the rule of
    the plan problem is applied. Where the plan problem does not leave recomputation free, what it asks for replaces
    `share`.
    """
    if plan.recompute is not Decide.FREE:
        return recut(plan, counts, Partition(counts))
    rows = []
    for layers in Partition(counts).layers_of(plan.model):
        numbers = Counter(layer.name for layer in layers)
        able = [layer for layer in plan.model.kinds if layer.recompute and numbers[layer.name] and share]
        rows.append(tuple(Recomputed(one.name, _least(one).name, ceil(share * numbers[one.name])) for one in able))
    return made_expressible(plan, Partition(counts, tuple(rows) if any(rows) else ()))


def _least(layer: LayerType) -> RecomputeMode:
    return min(layer.recompute, key=lambda mode: (mode.keeps, mode.time))
