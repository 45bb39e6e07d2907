"""A step of training that was run: the layout of a model, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeasuredStep:
    """`seconds` of a step, the median over some; `place` says which step of which file it is.

    `microbatches` are those of each data-parallel replica, `sizes` are tensor, context, expert and data. `sequence` and
    `schedule` are None where the configuration decides and where it is 1F1B or interleaved 1F1B. `recompute` names
    what every layer recomputes: none, full, or modules joined by +; `partition` is None where layers are cut evenly.
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
