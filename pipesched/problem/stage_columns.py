"""Stages from columns: one sequence a quantity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipesched.problem.stage import Stage


def stages_of(
    forward: Sequence[int],
    backward: Sequence[int],
    weight: Sequence[int] | None,
    fused: Sequence[int],
    transfer: Sequence[int] | None = None,
    overlapped: Sequence[int] | None = None,
    **others: Sequence[Any],
) -> tuple[Stage, ...]:
    """Stages from one sequence a field, each with an entry a stage; what is left out is as in `Stage`."""
    given: dict[str, Sequence[Any] | None] = {
        "forward": forward, "backward": backward, "weight": weight, "fused": fused, "transfer": transfer,
        "overlapped": overlapped, **others,
    }  # fmt: skip
    rows = {name: column for name, column in given.items() if column is not None}
    entries = zip(*rows.values(), strict=True)
    return tuple(Stage(**({"weight": None} | dict(zip(rows, entry, strict=True)))) for entry in entries)
