"""Construction of stages from columns: one sequence for each quantity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipesched.problem.blocks import Blocks
from pipesched.problem.quantities import Ticks
from pipesched.problem.stage import Stage


def stages_of(
    forward: Sequence[Ticks],
    backward: Sequence[Ticks],
    weight: Sequence[Ticks] | None,
    fused: Sequence[Ticks],
    transfer: Sequence[Ticks] | None = None,
    overlapped: Sequence[Ticks | None] | None = None,
    block_saves: Sequence[Ticks | None] | None = None,
    **others: Sequence[Any],
) -> tuple[Stage, ...]:
    """Return stages from one sequence for each field, with an entry for each stage.

    Fields left out have their defaults; without `weight` no backward is split. `overlapped` and `block_saves` are the
    fields `ticks` and `saves` of `Blocks`.
    """
    nothing = [None] * len(forward)
    blocks = [Blocks(*one) for one in zip(overlapped or nothing, block_saves or nothing, strict=True)]
    given: dict[str, Sequence[Any] | None] = {
        "forward": forward, "backward": backward, "weight": weight, "fused": fused, "transfer": transfer,
        "blocks": blocks, **others,
    }  # fmt: skip
    rows = {name: column for name, column in given.items() if column is not None}
    entries = zip(*rows.values(), strict=True)
    return tuple(Stage(**({"weight": None} | dict(zip(rows, entry, strict=True)))) for entry in entries)
