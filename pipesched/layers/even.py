"""The even partition: as many layers on every stage as on any other, as runtimes cut a model by default."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from pipesched.layers.model import Model


def even_counts(model: Model, stages: int) -> tuple[int, ...] | None:
    """Layers of each stage where the repeated layers are spread evenly, the first stages with one more.

    Layers of which there is one alone, such as an embedding or a head, go with their neighbours. None where a stage
    would be empty, or where layers that must share a stage would not.
    """
    number = Counter(layer.name for layer in model.sequence)
    repeated = [at for at, layer in enumerate(model.sequence) if number[layer.name] > 1]
    repeated = repeated or list(range(len(model.sequence)))
    if len(repeated) < stages:
        return None
    share, more = divmod(len(repeated), stages)
    starts = [0, *(repeated[stage * share + min(stage, more)] for stage in range(1, stages)), len(model.sequence)]
    if any(start not in model.cuts for start in starts):
        return None
    return tuple(b - a for a, b in pairwise(starts))


def some_counts(model: Model, stages: int) -> tuple[int, ...]:
    """Layers of each stage in some partition: the even one, or else the first cuts that there are."""
    even = even_counts(model, stages)
    if even is not None:
        return even
    starts = [*model.cuts[:stages], model.cuts[-1]]
    return tuple(b - a for a, b in pairwise(starts))
