"""Change the recomputation of partitions to what the plan problem's rule (a framework's settings) can express.

Each changed partition keeps no more activation memory on any stage than the original, where the rule allows that.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pipesched.int64_arrays import IntArray
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.problem.passes import F
from solver.planning.joint.draft import KINDS, Draft, StageSums
from solver.planning.joint.expressible_layers import ExpressibleLayers, SelectedModes


def made_expressible(plan: PlanProblem, partition: Partition) -> Partition:
    """Return the partition with recomputation that the plan problem's rule can express, and as little more as possible.

    No stage keeps more activation memory than before; where the rule has no such setting, the setting with the most
    recomputation is used. The partition is returned unchanged if the rule allows any layers, if it recomputes nothing,
    or if the plan problem does not leave recomputation open.
    """
    if plan.recompute_rule is RecomputeRule.ANY or plan.recompute is not Decide.FREE or not partition.recompute:
        return partition
    sums = StageSums(plan)
    draft, selected = sums.of_partition(partition), SelectedModes(sums)
    wanted = _kept(sums, draft)
    if plan.recompute_rule is RecomputeRule.FIRST:
        return sums.partition(_first(sums, selected, draft))
    drafts = [
        selected.draft_of(draft.cuts, setting) for setting in _settings(plan.recompute_rule, selected, draft.cuts)
    ]
    enough = (each for each in drafts if (_kept(sums, each) <= wanted).all())
    return sums.partition(next(enough, drafts[-1]))


def fewer(plan: PlanProblem, partition: Partition) -> Iterator[Partition]:
    """Yield the partition with less recomputation: the next smaller setting that the plan problem's rule can express.

    The rule must not be `any`, and recomputation must be free. With the rule `first` there is one partition for each
    stage that recomputes; with the other rules at most one in all.
    """
    sums = StageSums(plan)
    draft, selected = sums.of_partition(partition), SelectedModes(sums)
    if plan.recompute_rule is RecomputeRule.FIRST:
        for stage, row in enumerate(draft.recomputed):
            if any(row):
                rows = list(draft.recomputed)
                begin, end = draft.cuts[stage], draft.cuts[stage + 1]
                rows[stage] = selected.leading(begin, end, selected.whole(row) - 1)
                yield sums.partition(Draft(draft.cuts, tuple(rows)))
        return
    before = None
    for setting in _settings(plan.recompute_rule, selected, draft.cuts):
        each = selected.draft_of(draft.cuts, setting)
        if each == draft and before is not None:
            yield sums.partition(before)
        before = each


def _first(sums: StageSums, selected: SelectedModes, draft: Draft) -> Draft:
    """Return the draft in which each stage recomputes the fewest of its first layers that save as much memory."""
    wanted, rows = _kept(sums, draft), list(draft.recomputed)
    for stage, (begin, end) in enumerate(pairwise(draft.cuts)):
        for number in range(selected.most(begin, end) + 1):
            rows[stage] = selected.leading(begin, end, number)
            if _kept(sums, Draft(draft.cuts, tuple(rows)))[stage] <= wanted[stage]:
                break
    return Draft(draft.cuts, tuple(rows))


def _settings(rule: RecomputeRule, selected: SelectedModes, cuts: tuple[int, ...]) -> Iterator[ExpressibleLayers]:
    """Yield every recomputation setting that the rule can express, from none recomputed to all layers recomputed.

    `cuts` are the numbers of layers before each stage, and of all.
    """
    yield ExpressibleLayers()
    if rule is RecomputeRule.SAME:
        yield from (ExpressibleLayers(modules=number) for number in selected.lists)
        for number in range(1, selected.most_of(cuts) + 1):
            yield ExpressibleLayers(number)
    if selected.has_everything:
        yield ExpressibleLayers(everything=True)


def _kept(sums: StageSums, draft: Draft) -> IntArray:
    """Return the activation memory that a forward keeps on each stage, in steps of memory, shape (stages,)."""
    kept: IntArray = sums.costs(draft).takes[KINDS.index(F)]
    return kept
