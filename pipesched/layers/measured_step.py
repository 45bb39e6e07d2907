"""A measured training step: the layout of a model, and the step's duration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeasuredStep:
    """A measured training step of `seconds` (a median); `place` says where in a file it was read, for messages.

    `microbatches` are those of each data-parallel replica, each of `microbatch_size` sequences; `sizes` are the tensor,
    context, expert and data sizes as pairs (name, size); `pipeline` is the number of pipeline devices, each with
    `chunks` stages. `sequence` is None where the configuration gives it; `schedule` None for 1F1B or interleaved 1F1B.
    `partition` has the number of layers of each stage, None where they are cut evenly.

    `recompute` is what a recomputed layer computes again: none, full, or modules joined by +. On each stage one layer
    in `recompute_every` is recomputed, and if `recompute_layers` is not None no more than so many, the first ones
    (Megatron's --recompute-num-layers).
    """

    place: str
    seconds: float
    sizes: tuple[tuple[str, int], ...]
    pipeline: int
    chunks: int
    microbatch_size: int
    microbatches: int
    sequence: int | None = None
    schedule: str | None = None
    recompute: str = "none"
    partition: tuple[int, ...] | None = None
    recompute_every: int = 1
    recompute_layers: int | None = None
