"""A partition: how many layers each stage has, in the model's order, and how many of them are recomputed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from pipesched.layers.layer import LayerType
from pipesched.layers.model import Model


class Recomputed(NamedTuple):
    """So many of a stage's layers of this name are recomputed in this mode; the first ones that no other entry took."""

    layer: str
    way: str
    layers: int


@dataclass(frozen=True)
class Partition:
    """`counts[s]` layers on the s-th stage of a chain, and what is recomputed there; empty: nothing anywhere."""

    counts: tuple[int, ...]
    recompute: tuple[tuple[Recomputed, ...], ...] = ()

    @property
    def stages(self) -> int:
        return len(self.counts)

    def recomputed_on(self, stage: int) -> tuple[Recomputed, ...]:
        """The recomputation of this stage."""
        return self.recompute[stage] if self.recompute else ()

    def ranges(self) -> tuple[range, ...]:
        """The layers of each stage, by their numbers in the model."""
        return tuple(range(a, b) for a, b in pairwise((0, *accumulate(self.counts))))

    def layers_of(self, model: Model) -> tuple[tuple[LayerType, ...], ...]:
        """The layers of each stage."""
        return tuple(model.sequence[held.start : held.stop] for held in self.ranges())

    def recompute_counts(self) -> tuple[dict[str, int], ...]:
        """For each stage the number of layers recomputed in each mode; modes of no layer are left out."""
        found: list[dict[str, int]] = []
        for stage in range(self.stages):
            counts: dict[str, int] = {}
            for one in self.recomputed_on(stage):
                counts[one.way] = counts.get(one.way, 0) + one.layers
            found.append({way: number for way, number in counts.items() if number})
        return tuple(found)


def mistakes(model: Model, partition: Partition) -> list[str]:
    """Reasons why the model cannot be cut so; empty where it can."""
    found = []
    if sum(partition.counts) != len(model.sequence):
        found.append(f"found {sum(partition.counts)} layers in all; allowed: the model's {len(model.sequence)}")
    for stage, held in enumerate(partition.ranges()):
        if not held:
            found.append(f"found no layer on stage {stage}; allowed: at least one on each stage")
        elif held.start not in model.cuts and held.start < len(model.sequence):
            layer = model.sequence[held.start].name
            found.append(f"stage {stage} begins with {layer}, which shares a stage with the layer before it")
    return found
