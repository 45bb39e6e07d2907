"""Stages from columns: one sequence a quantity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipesched.problem.memory_options import Offload, Recomputation
from pipesched.problem.passes import PassKind
from pipesched.problem.stage import Gather, PassMemory, Stage, TaskSpec


def stages_of(
    forward: Sequence[int],
    backward: Sequence[int],
    weight: Sequence[int] | None,
    fused: Sequence[int],
    transfer: Sequence[int] | None = None,
    overlapped: Sequence[int] | None = None,
    *,
    activation: Sequence[int] | None = None,
    freed: Sequence[int] | None = None,
    static: Sequence[int] | None = None,
    tasks: Sequence[tuple[tuple[PassKind, tuple[TaskSpec, ...]], ...]] | None = None,
    stream: Sequence[str] | None = None,
    offload: Sequence[Offload | None] | None = None,
    recompute: Sequence[tuple[Recomputation, ...]] | None = None,
    may_keep: Sequence[bool] | None = None,
    lent: Sequence[int] | None = None,
    workspace: Sequence[PassMemory] | None = None,
    until_end: Sequence[PassMemory] | None = None,
    reduce: Sequence[TaskSpec | None] | None = None,
    step: Sequence[TaskSpec | None] | None = None,
    gather: Sequence[Gather | None] | None = None,
    buckets: Sequence[int] | None = None,
) -> tuple[Stage, ...]:
    """Stages from one sequence a quantity, each with an entry a stage; what is left out is as in `Stage`."""
    given: dict[str, Sequence[Any] | None] = {
        "forward": forward, "backward": backward, "weight": weight, "fused": fused, "transfer": transfer,
        "overlapped": overlapped, "activation": activation, "freed": freed, "static": static, "tasks": tasks,
        "stream": stream, "offload": offload, "recompute": recompute, "may_keep": may_keep, "lent": lent,
        "workspace": workspace, "until_end": until_end,
        "reduce": reduce, "step": step, "gather": gather, "buckets": buckets,
    }  # fmt: skip
    rows = {name: column for name, column in given.items() if column is not None}
    entries = zip(*rows.values(), strict=True)
    return tuple(Stage(**({"weight": None} | dict(zip(rows, entry, strict=True)))) for entry in entries)
