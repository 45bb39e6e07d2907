"""Random changes of a draft's recomputation, within the rule of the plan problem: one layer more, one layer less."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Protocol

from formulations.partition.stage_terms import ChainPosition
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from solver.planning.joint.draft import Draft, StageSums
from solver.planning.joint.expressible_layers import ExpressibleLayers, SelectedModes

Rows = Sequence[Sequence[int]]


class Recomputation(Protocol):
    """Interface for random changes of how many layers a draft recomputes; all draws are from one random generator."""

    def clipped(self, cuts: tuple[int, ...], recomputed: Rows) -> Draft:
        """Return the draft with these cuts that recomputes the wanted numbers of layers, or as many as stages have.

        `recomputed` has the wanted numbers by stage and mode.
        """

    def less(self, draft: Draft) -> Draft:
        """Return the draft with one layer less recomputed, or with as many layers less as the rule joins.

        `draft` itself if no layer is recomputed.
        """

    def more(self, draft: Draft, stages: set[ChainPosition]) -> Draft | None:
        """Return the draft with one more layer recomputed on some of `stages`, or as many more as the rule joins.

        None if no further layer can be recomputed there.
        """


def recomputation_of(plan: PlanProblem, sums: StageSums, random: Random) -> Recomputation:
    """Return the generator of random changes of recomputed layers that keeps to the plan problem's rule on them.

    The rule says which layers may be recomputed together: any, the first ones of a stage, or the same on all stages.
    """
    if plan.recompute_rule is RecomputeRule.ANY or plan.recompute is not Decide.FREE:
        return AnyLayers(sums, random)
    selected = SelectedModes(sums)
    if plan.recompute_rule is RecomputeRule.FIRST:
        return FirstLayers(selected, random)
    return SameLayers(selected, plan.recompute_rule is RecomputeRule.SAME)


class AnyLayers:
    """Random changes of how many layers are recomputed, where any layer of any stage may be, independently.

    `less` and `more` return a draft of a partition with fewer or more of them, `clipped` one with given numbers as far
    as its stages have such layers.
    """

    def __init__(self, sums: StageSums, random: Random) -> None:
        self._sums, self._random = sums, random

    def clipped(self, cuts: tuple[int, ...], recomputed: Rows) -> Draft:
        return self._sums.clipped(cuts, recomputed)

    def less(self, draft: Draft) -> Draft:
        some = [(s, w) for s, row in enumerate(draft.recomputed) for w, number in enumerate(row) if number]
        return _with(draft, *self._random.choice(some), -1) if some else draft

    def more(self, draft: Draft, stages: set[ChainPosition]) -> Draft | None:
        modes = range(len(self._sums.modes))
        some = [(s, w) for s in sorted(stages) for w in modes if self._sums.room(draft, s, w) > 0]
        return _with(draft, *self._random.choice(some), 1) if some else None


class FirstLayers:
    """Random changes where each stage recomputes its first layers, in a number that differs from stage to stage.

    `less` and `more` return a draft of a partition with fewer or more recomputed layers, `clipped` the draft nearest to
    given numbers.
    """

    def __init__(self, selected: SelectedModes, random: Random) -> None:
        self._selected, self._random = selected, random

    def clipped(self, cuts: tuple[int, ...], recomputed: Rows) -> Draft:
        return self._draft(cuts, [self._selected.whole(row) for row in recomputed])

    def less(self, draft: Draft) -> Draft:
        some = [s for s, row in enumerate(draft.recomputed) if any(row)]
        return self._changed(draft, self._random.choice(some), -1) if some else draft

    def more(self, draft: Draft, stages: set[ChainPosition]) -> Draft | None:
        some = [
            s
            for s in sorted(stages)
            if self._selected.whole(draft.recomputed[s]) < self._selected.most(draft.cuts[s], draft.cuts[s + 1])
        ]
        return self._changed(draft, self._random.choice(some), 1) if some else None

    def _changed(self, draft: Draft, stage: ChainPosition, more: int) -> Draft:
        counts = [self._selected.whole(row) for row in draft.recomputed]
        counts[stage] += more
        return self._draft(draft.cuts, counts)

    def _draft(self, cuts: tuple[int, ...], counts: Sequence[int]) -> Draft:
        stages = zip(pairwise(cuts), counts, strict=True)
        return Draft(cuts, tuple(self._selected.leading(*ends, number) for ends, number in stages))


class SameLayers:
    """Random changes where all stages use one recomputation setting, as some runtimes have it.

    With `steps` it is nothing, a list of modules, one number of first layers for all stages, or all layers; without,
    nothing or all layers. `less` and `more` return a draft of a partition with a weaker or stronger setting, `clipped`
    the draft nearest to given numbers.
    """

    def __init__(self, selected: SelectedModes, steps: bool) -> None:
        self._selected, self._steps = selected, steps

    def clipped(self, cuts: tuple[int, ...], recomputed: Rows) -> Draft:
        return self._selected.draft_of(cuts, self._selected.weakest_setting(recomputed))

    def less(self, draft: Draft) -> Draft:
        setting = self._selected.weakest_setting(draft.recomputed)
        if setting == ExpressibleLayers():
            return draft
        if setting.modules:
            return self._selected.draft_of(draft.cuts, ExpressibleLayers(modules=setting.modules - 1))
        if setting.modules is not None or not self._steps:
            return self._selected.draft_of(draft.cuts, ExpressibleLayers())
        first = self._selected.most_of(draft.cuts) + self._selected.mtp if setting.everything else setting.first
        return self._selected.draft_of(draft.cuts, ExpressibleLayers(first - 1))

    def more(self, draft: Draft, stages: set[ChainPosition]) -> Draft | None:
        """Return the draft with the next stronger setting, which recomputes modules before whole layers.

        None if there is none, or `stages` is empty. The setting changes on all stages, and thereby on those of
        `stages`.
        """
        if not stages:
            return None
        setting, most = self._selected.weakest_setting(draft.recomputed), self._selected.most_of(draft.cuts)
        number = -1 if setting == ExpressibleLayers() else setting.modules
        if self._steps and number is not None and number + 1 in self._selected.lists:
            return self._selected.draft_of(draft.cuts, ExpressibleLayers(modules=number + 1))
        if setting.everything or (setting.first >= most and not self._selected.has_everything):
            return None
        more = (
            ExpressibleLayers(setting.first + 1)
            if self._steps and setting.first < most
            else ExpressibleLayers(everything=True)
        )
        if more.everything and not self._selected.has_everything:
            return None
        return self._selected.draft_of(draft.cuts, more)


def _with(draft: Draft, stage: ChainPosition, mode: int, more: int) -> Draft:
    rows = [list(row) for row in draft.recomputed]
    rows[stage][mode] += more
    return Draft(draft.cuts, tuple(map(tuple, rows)))
