"""Changes of what a draft recomputes: a layer more on a device, a layer less, and as much as other cuts allow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Protocol

from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from solver.planning.joint.draft import Draft, StageSums
from solver.planning.joint.expressible_layers import ExpressibleLayers, SelectedModes

Rows = Sequence[Sequence[int]]


class Recomputation(Protocol):
    """All draws are from one random generator."""

    def clipped(self, cuts: tuple[int, ...], recomputed: Rows) -> Draft:
        """These cuts, with as much recomputed on each stage as there can be."""

    def less(self, draft: Draft) -> Draft:
        """One layer less, or as many as have to go with it; the draft itself where none is recomputed."""

    def more(self, draft: Draft, stages: set[int]) -> Draft | None:
        """One layer more on some of these stages, or as many as have to go with it; None where there is none."""


def recomputation_of(plan: PlanProblem, sums: StageSums, random: Random) -> Recomputation:
    """Any layers; or those that the plan problem's rule allows to be recomputed together."""
    if plan.recompute_rule is RecomputeRule.ANY or plan.recompute is not Decide.FREE:
        return AnyLayers(sums, random)
    ways = SelectedModes(sums)
    if plan.recompute_rule is RecomputeRule.FIRST:
        return FirstLayers(ways, random)
    return SameLayers(ways, plan.recompute_rule is RecomputeRule.SAME)


class AnyLayers:
    """Any layer of any stage."""

    def __init__(self, sums: StageSums, random: Random) -> None:
        self._sums, self._random = sums, random

    def clipped(self, cuts: tuple[int, ...], recomputed: Rows) -> Draft:
        return self._sums.clipped(cuts, recomputed)

    def less(self, draft: Draft) -> Draft:
        some = [(s, w) for s, row in enumerate(draft.recomputed) for w, number in enumerate(row) if number]
        return _with(draft, *self._random.choice(some), -1) if some else draft

    def more(self, draft: Draft, stages: set[int]) -> Draft | None:
        ways = range(len(self._sums.ways))
        some = [(s, w) for s in sorted(stages) for w in ways if self._sums.room(draft, s, w) > 0]
        return _with(draft, *self._random.choice(some), 1) if some else None


class FirstLayers:
    """The first layers of each stage."""

    def __init__(self, ways: SelectedModes, random: Random) -> None:
        self._ways, self._random = ways, random

    def clipped(self, cuts: tuple[int, ...], recomputed: Rows) -> Draft:
        return self._draft(cuts, [self._ways.whole(row) for row in recomputed])

    def less(self, draft: Draft) -> Draft:
        some = [s for s, row in enumerate(draft.recomputed) if any(row)]
        return self._changed(draft, self._random.choice(some), -1) if some else draft

    def more(self, draft: Draft, stages: set[int]) -> Draft | None:
        some = [
            s
            for s in sorted(stages)
            if self._ways.whole(draft.recomputed[s]) < self._ways.most(draft.cuts[s], draft.cuts[s + 1])
        ]
        return self._changed(draft, self._random.choice(some), 1) if some else None

    def _changed(self, draft: Draft, stage: int, more: int) -> Draft:
        counts = [self._ways.whole(row) for row in draft.recomputed]
        counts[stage] += more
        return self._draft(draft.cuts, counts)

    def _draft(self, cuts: tuple[int, ...], counts: Sequence[int]) -> Draft:
        stages = zip(pairwise(cuts), counts, strict=True)
        return Draft(cuts, tuple(self._ways.leading(*ends, number) for ends, number in stages))


class SameLayers:
    """`steps`: one number of first layers on all stages, then all layers; else all layers or none."""

    def __init__(self, ways: SelectedModes, steps: bool) -> None:
        self._ways, self._steps = ways, steps

    def clipped(self, cuts: tuple[int, ...], recomputed: Rows) -> Draft:
        return self._ways.told(cuts, self._ways.said_by(recomputed))

    def less(self, draft: Draft) -> Draft:
        said = self._ways.said_by(draft.recomputed)
        if said == ExpressibleLayers():
            return draft
        if said.modules:
            return self._ways.told(draft.cuts, ExpressibleLayers(modules=said.modules - 1))
        if said.modules is not None or not self._steps:
            return self._ways.told(draft.cuts, ExpressibleLayers())
        first = self._ways.most_of(draft.cuts) + self._ways.mtp if said.everything else said.first
        return self._ways.told(draft.cuts, ExpressibleLayers(first - 1))

    def more(self, draft: Draft, stages: set[int]) -> Draft | None:
        """Modules before whole layers. All stages change, these among them."""
        if not stages:
            return None
        said, most = self._ways.said_by(draft.recomputed), self._ways.most_of(draft.cuts)
        number = -1 if said == ExpressibleLayers() else said.modules
        if self._steps and number is not None and number + 1 in self._ways.lists:
            return self._ways.told(draft.cuts, ExpressibleLayers(modules=number + 1))
        if said.everything or (said.first >= most and not self._ways.has_everything):
            return None
        more = (
            ExpressibleLayers(said.first + 1)
            if self._steps and said.first < most
            else ExpressibleLayers(everything=True)
        )
        if more.everything and not self._ways.has_everything:
            return None
        return self._ways.told(draft.cuts, more)


def _with(draft: Draft, stage: int, way: int, more: int) -> Draft:
    rows = [list(row) for row in draft.recomputed]
    rows[stage][way] += more
    return Draft(draft.cuts, tuple(map(tuple, rows)))
