"""Partitions adjacent to a given one: one or two cuts moved by one layer, or one layer less recomputed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, combinations, pairwise, product

from formulations.partition.stage_terms import ChainPosition
from pipesched.layers.model import Model
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from solver.parameters import tunable, tuned
from solver.planning.joint.expressible import fewer, made_expressible


@dataclass(frozen=True)
@tunable
class NeighbourParams:
    """Limit of the enumeration of adjacent partitions: how many stages there may be for two cuts to move."""

    most_stages_for_pairs: int = tuned(24, "stages, up to which two cuts are moved together", 2, 200)


MOST_STAGES_FOR_PAIRS = NeighbourParams().most_stages_for_pairs


def moved_cuts(model: Model, cuts: list[int], together: int) -> Iterator[list[int]]:
    """Yield every list of cuts in which `together` of them are moved by one allowed position and no stage is too small.

    `cuts` are allowed cuts of the model, from 0 to its number of layers; the first and the last stay. Nothing is
    yielded for several cuts of more stages than the parameter `most_stages_for_pairs`.
    """
    allowed = model.cuts
    place = {cut: at for at, cut in enumerate(allowed)}
    if together > 1 and len(cuts) > MOST_STAGES_FOR_PAIRS + 1:
        return
    for which in combinations(range(1, len(cuts) - 1), together):
        for steps in product((-1, 1), repeat=len(which)):
            moved = [place[cut] for cut in cuts]
            for at, step in zip(which, steps, strict=True):
                moved[at] = place[cuts[at]] + step
            if all(b - a >= model.least_layers for a, b in pairwise(moved)):
                yield [allowed[at] for at in moved]


def nearby(plan: PlanProblem, partition: Partition) -> Iterator[Partition]:
    """Yield the adjacent partitions: first those that recompute less, then those with other cuts.

    After a change of cuts, each stage recomputes as many layers as before, as far as it still has them.
    """
    if plan.recompute is Decide.FREE and plan.recompute_rule is not RecomputeRule.ANY:
        yield from fewer(plan, partition)
    elif plan.recompute is Decide.FREE:
        for stage in range(partition.stages):
            own = partition.recomputed_on(stage)
            for at, one in enumerate(own):
                less = (*own[:at], one._replace(layers=one.layers - 1), *own[at + 1 :])
                yield _with(partition, stage, tuple(each for each in less if each.layers))
    if plan.counts is None:
        cuts = list(accumulate(partition.counts, initial=0))
        for moved in chain(moved_cuts(plan.model, cuts, 1), moved_cuts(plan.model, cuts, 2)):
            yield recut(plan, tuple(b - a for a, b in pairwise(moved)), partition)


def recut(plan: PlanProblem, counts: tuple[int, ...], like: Partition) -> Partition:
    """Return the partition with `counts` layers per stage and, as far as possible, the recomputation of `like`.

    Where a stage has fewer layers of a type, fewer are recomputed; the rule of the plan problem is applied. If
    recomputation is not free, what the plan problem asks for replaces it.
    """
    recompute = []
    for stage, layers in enumerate(Partition(counts).layers_of(plan.model)):
        left = Counter(layer.name for layer in layers)
        own = []
        if plan.recompute is Decide.ALWAYS:
            modes = {layer.name: layer.recompute[0].name for layer in layers if layer.recompute}
            own = [Recomputed(name, mode, left[name]) for name, mode in modes.items()]
        for one in like.recomputed_on(stage) if plan.recompute is Decide.FREE else ():
            number = min(one.layers, left[one.layer])
            left[one.layer] -= number
            own += [one._replace(layers=number)] if number else []
        recompute.append(tuple(own))
    return made_expressible(plan, Partition(counts, tuple(recompute) if any(recompute) else ()))


def _with(partition: Partition, stage: ChainPosition, recomputed: tuple[Recomputed, ...]) -> Partition:
    rows = [*partition.recompute]
    rows[stage] = recomputed
    return Partition(partition.counts, tuple(rows) if any(rows) else ())
