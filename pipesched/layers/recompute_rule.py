"""Rules for which layers may be recomputed together: what the settings of training runtimes can say of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from pipesched.layers.layer import LayerType
from pipesched.layers.model import Model
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.roles import Role, role_of

# Recomputing a whole layer from its input, and only its attention core: the two ways runtimes know by a setting.
FULL = ("full",)
SELECTIVE = ("selective", "attention")
# The roles of layers that runtimes recompute.
ROLES = (Role.TRANSFORMER, Role.MTP)


class RecomputeRule(StrEnum):
    """How the layers to recompute are told; by all but the first in the way `full`, and no embedding and no head."""

    ANY = "any"
    # Of every stage so many of its first transformer layers.
    FIRST = "first"
    # One number for all stages, or a whole stage where it has fewer, multi-token prediction layers left out; or all
    # layers; or all attention cores.
    SAME = "same"
    # All transformer and multi-token prediction layers, or none.
    ALL = "all"


class _Stage(NamedTuple):
    """The transformer layers of a stage, in order, and its multi-token prediction layers: the way of each, or None."""

    layers: tuple[str | None, ...]
    mtp: tuple[str | None, ...]

    @property
    def ways(self) -> set[str]:
        return {way for way in (*self.layers, *self.mtp) if way is not None}

    @property
    def first(self) -> int:
        """How many of the first transformer layers are recomputed."""
        return next((at for at, way in enumerate(self.layers) if way is None), len(self.layers))


def why_not_told(model: Model, partition: Partition, rule: RecomputeRule) -> str | None:
    """Why the rule does not allow what the partition recomputes; None where it does."""
    if rule is RecomputeRule.ANY or not partition.recompute:
        return None
    stages = []
    for at, layers in enumerate(partition.layers_of(model)):
        again = partition.recomputed_on(at)
        ends = [one.layer for one in again if one.layers and role_of(one.layer) not in ROLES]
        if ends:
            return f"a recomputed {role_of(ends[0]).value} (stage {at})"
        stages.append(_stage(layers, again))
    used = set().union(*(stage.ways for stage in stages))
    known = FULL + (SELECTIVE if rule is RecomputeRule.SAME else ())
    if used - set(known):
        return f"recomputation in the way {min(used - set(known))!r}"
    if used & set(SELECTIVE):
        return _not_all(stages, SELECTIVE)
    if rule is RecomputeRule.ALL:
        return _not_all(stages, FULL)
    return _not_first(stages) or (_not_same(stages) if rule is RecomputeRule.SAME else None)


def _stage(layers: Sequence[LayerType], again: Sequence[Recomputed]) -> _Stage:
    """Entries are taken in turn, each the first layers of its name that no other took."""
    left: dict[str, Counter[str]] = {}
    for one in again:
        left.setdefault(one.layer, Counter())[one.way] += one.layers

    def way_of(name: str) -> str | None:
        for way, number in left.get(name, {}).items():
            if number:
                left[name][way] -= 1
                return way
        return None

    ways = [(role_of(layer.name), way_of(layer.name)) for layer in layers]
    return _Stage(*(tuple(way for role, way in ways if role is wanted) for wanted in ROLES))


def _not_all(stages: Sequence[_Stage], ways: Sequence[str]) -> str | None:
    """Unless all layers are recomputed in these ways, or none."""
    every = [way for stage in stages for way in (*stage.layers, *stage.mtp)]
    number = sum(way in ways for way in every)
    return None if number in (0, len(every)) else f"{number} of {len(every)} layers recomputed, not all or none"


def _not_first(stages: Sequence[_Stage]) -> str | None:
    """Unless those recomputed are the first of their stage; multi-token prediction layers come after all others."""
    for at, stage in enumerate(stages):
        every = [way is not None for way in (*stage.layers, *stage.mtp)]
        if every != sorted(every, reverse=True):
            return f"layers recomputed on stage {at} that are not its first"
    return None


def _not_same(stages: Sequence[_Stage]) -> str | None:
    """Unless all stages recompute one number of layers, or all that they have, and MTP layers only with all others."""
    counts, held = [stage.first for stage in stages], [len(stage.layers) for stage in stages]
    mtp = [way is not None for stage in stages for way in stage.mtp]
    if any(mtp) and not (all(mtp) and counts == held):
        return "recomputed multi-token prediction layers, and not all other layers"
    if counts != [min(max(counts), each) for each in held]:
        return f"{', '.join(map(str, counts))} layers recomputed by stage, not the same number"
    return None
