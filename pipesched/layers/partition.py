"""A partition of a model: the number of layers of each stage, and the layers that are recomputed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from pipesched.layers.layer import LayerType
from pipesched.layers.model import Model


class Recomputed(NamedTuple):
    """Recomputation of a number of `layers` on a stage: those named `layer` there, in the mode named `mode`.

    They are the first of that name on the stage, after those of earlier entries for the same name.
    """

    layer: str
    mode: str
    layers: int


@dataclass(frozen=True)
class Partition:
    """A partition: `counts[s]` layers on the s-th stage of a chain, and `recompute[s]`, those recomputed there.

    `recompute` is empty if none is recomputed on any stage.
    """

    counts: tuple[int, ...]
    recompute: tuple[tuple[Recomputed, ...], ...] = ()

    @property
    def stages(self) -> int:
        return len(self.counts)

    def recomputed_on(self, stage: int) -> tuple[Recomputed, ...]:
        """Return the recomputation on the stage with this place in a chain, from 0."""
        return self.recompute[stage] if self.recompute else ()

    def ranges(self) -> tuple[range, ...]:
        """Return the layers of each stage, as ranges of numbers in the model."""
        return tuple(range(a, b) for a, b in pairwise((0, *accumulate(self.counts))))

    def layers_of(self, model: Model) -> tuple[tuple[LayerType, ...], ...]:
        """Return the layers of each stage."""
        return tuple(model.sequence[layers.start : layers.stop] for layers in self.ranges())

    def recompute_counts(self) -> tuple[dict[str, int], ...]:
        """Return for each stage the number of layers recomputed in each mode; modes without layers are left out."""
        found: list[dict[str, int]] = []
        for stage in range(self.stages):
            counts: dict[str, int] = {}
            for one in self.recomputed_on(stage):
                counts[one.mode] = counts.get(one.mode, 0) + one.layers
            found.append({mode: number for mode, number in counts.items() if number})
        return tuple(found)


def mistakes(model: Model, partition: Partition) -> list[str]:
    """Return the reasons why the model cannot be cut by the partition's `counts`; empty if it can."""
    found = []
    if sum(partition.counts) != len(model.sequence):
        found.append(f"found {sum(partition.counts)} layers in all; allowed: the model's {len(model.sequence)}")
    for stage, layers in enumerate(partition.ranges()):
        if not layers and not model.empty_stages:
            found.append(f"found no layer on stage {stage}; allowed: at least one on each stage")
        elif layers.start not in model.cuts and layers.start < len(model.sequence):
            layer = model.sequence[layers.start].name
            found.append(f"stage {stage} begins with {layer}, which shares a stage with the layer before it")
    return found
