"""The even partition: equal numbers of layers on all stages, as training runtimes cut a model by default."""

from __future__ import annotations

from itertools import pairwise

from pipesched.layers.model import Model
from pipesched.layers.roles import Role, role_of


def even_counts(model: Model, stages: int) -> tuple[int, ...] | None:
    """Return the number of layers of each stage if transformer layers are spread evenly.

    The first stages have one more where the division leaves a remainder. Dense layers and layers with experts count
    alike; embedding, head and multi-token prediction join their neighbours. If only the number of all layers is
    divisible by the stages, embedding and head count too, as in Megatron with
    `--account-for-embedding-in-pipeline-split` and `--account-for-loss-in-pipeline-split`. None if a stage would be
    empty, or layers that must share a stage would not.
    """
    every = list(range(len(model.sequence)))
    counted = [at for at in every if role_of(model.sequence[at].name) is Role.TRANSFORMER] or every
    if len(counted) % stages and len(every) % stages == 0:
        counted = every
    if len(counted) < stages:
        return None
    share, more = divmod(len(counted), stages)
    starts = [0, *(counted[stage * share + min(stage, more)] for stage in range(1, stages)), len(every)]
    if any(start not in model.cuts for start in starts):
        return None
    return tuple(b - a for a, b in pairwise(starts))


def some_counts(model: Model, stages: int) -> tuple[int, ...]:
    """Return the number of layers of each stage in the even partition, or else in that with the first possible cuts.

    If the model has fewer layers that may begin a stage than there are `stages`, the last stages have no layer.
    """
    even = even_counts(model, stages)
    if even is not None:
        return even
    starts = [*model.cuts[:stages], *model.cuts[-1:] * max(1, stages + 1 - len(model.cuts))]
    return tuple(b - a for a, b in pairwise(starts))
