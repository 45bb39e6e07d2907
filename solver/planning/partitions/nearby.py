"""Partitions next to a given one: a cut or two moved by one layer, one layer more or fewer recomputed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, combinations, pairwise, product

from pipesched.layers.model import Model
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from solver.parameters import tunable, tuned
from solver.planning.joint.expressible import fewer, told


@dataclass(frozen=True)
@tunable
class NeighbourParams:
    """Partitions next to a given one."""

    most_stages_for_pairs: int = tuned(24, "stages, up to which two cuts are moved together", 2, 200)


MOST_STAGES_FOR_PAIRS = NeighbourParams().most_stages_for_pairs


def moved_cuts(model: Model, cuts: list[int], together: int) -> Iterator[list[int]]:
    """So many cuts moved to the next place before or after where the model may be cut; no stage is empty."""
    allowed = model.cuts
    place = {cut: at for at, cut in enumerate(allowed)}
    if together > 1 and len(cuts) > MOST_STAGES_FOR_PAIRS + 1:
        return
    for which in combinations(range(1, len(cuts) - 1), together):
        for steps in product((-1, 1), repeat=len(which)):
            moved = list(cuts)
            for at, step in zip(which, steps, strict=True):
                moved[at] = allowed[place[cuts[at]] + step]
            if all(a < b for a, b in pairwise(moved)):
                yield moved


def nearby(plan: PlanProblem, partition: Partition) -> Iterator[Partition]:
    """Less recomputed first, then other cuts; what is recomputed stays what it is as far as the layers go."""
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
    """Other numbers of layers; of what another partition recomputes on a stage, as much as there still can be."""
    recompute = []
    for stage, layers in enumerate(Partition(counts).layers_of(plan.model)):
        left = Counter(layer.name for layer in layers)
        own = []
        if plan.recompute is Decide.ALWAYS:
            ways = {layer.name: layer.recompute[0].name for layer in layers if layer.recompute}
            own = [Recomputed(name, way, left[name]) for name, way in ways.items()]
        for one in like.recomputed_on(stage) if plan.recompute is Decide.FREE else ():
            number = min(one.layers, left[one.layer])
            left[one.layer] -= number
            own += [one._replace(layers=number)] if number else []
        recompute.append(tuple(own))
    return told(plan, Partition(counts, tuple(recompute) if any(recompute) else ()))


def _with(partition: Partition, stage: int, recomputed: tuple[Recomputed, ...]) -> Partition:
    rows = [*partition.recompute]
    rows[stage] = recomputed
    return Partition(partition.counts, tuple(rows) if any(rows) else ())
