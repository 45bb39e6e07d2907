"""Partitions that recompute only what the plan problem's rule allows, made from others: no stage keeps more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.problem.passes import F
from solver.local_search.moves import Array
from solver.planning.joint.draft import KINDS, Draft, StageSums
from solver.planning.joint.expressible_layers import ExpressibleLayers, SelectedModes


def told(plan: PlanProblem, partition: Partition) -> Partition:
    """The partition, with as little more recomputed as the rule asks for; with the most where nothing saves as much."""
    if plan.recompute_rule is RecomputeRule.ANY or plan.recompute is not Decide.FREE or not partition.recompute:
        return partition
    sums = StageSums(plan)
    draft, ways = sums.of_partition(partition), SelectedModes(sums)
    wanted = _kept(sums, draft)
    if plan.recompute_rule is RecomputeRule.FIRST:
        return sums.partition(_first(sums, ways, draft))
    drafts = [ways.told(draft.cuts, said) for said in _ways_to_say(plan.recompute_rule, ways, draft.cuts)]
    enough = (each for each in drafts if (_kept(sums, each) <= wanted).all())
    return sums.partition(next(enough, drafts[-1]))


def fewer(plan: PlanProblem, partition: Partition) -> Iterator[Partition]:
    """Partitions that recompute one step less."""
    sums = StageSums(plan)
    draft, ways = sums.of_partition(partition), SelectedModes(sums)
    if plan.recompute_rule is RecomputeRule.FIRST:
        for stage, row in enumerate(draft.recomputed):
            if any(row):
                rows = list(draft.recomputed)
                begin, end = draft.cuts[stage], draft.cuts[stage + 1]
                rows[stage] = ways.leading(begin, end, ways.whole(row) - 1)
                yield sums.partition(Draft(draft.cuts, tuple(rows)))
        return
    before = None
    for said in _ways_to_say(plan.recompute_rule, ways, draft.cuts):
        each = ways.told(draft.cuts, said)
        if each == draft and before is not None:
            yield sums.partition(before)
        before = each


def _first(sums: StageSums, ways: SelectedModes, draft: Draft) -> Draft:
    """Of each stage the least number of first layers that saves as much."""
    wanted, rows = _kept(sums, draft), list(draft.recomputed)
    for stage, (begin, end) in enumerate(pairwise(draft.cuts)):
        for number in range(ways.most(begin, end) + 1):
            rows[stage] = ways.leading(begin, end, number)
            if _kept(sums, Draft(draft.cuts, tuple(rows)))[stage] <= wanted[stage]:
                break
    return Draft(draft.cuts, tuple(rows))


def _ways_to_say(rule: RecomputeRule, ways: SelectedModes, cuts: tuple[int, ...]) -> Iterator[ExpressibleLayers]:
    """All that can be said, from nothing recomputed to everything."""
    yield ExpressibleLayers()
    if rule is RecomputeRule.SAME:
        yield from (ExpressibleLayers(modules=number) for number in ways.lists)
        for number in range(1, ways.most_of(cuts) + 1):
            yield ExpressibleLayers(number)
    if ways.has_everything:
        yield ExpressibleLayers(everything=True)


def _kept(sums: StageSums, draft: Draft) -> Array:
    """The memory that a forward of each stage keeps."""
    return sums.costs(draft).takes[KINDS.index(F)]
