"""Frozen stages: their cells have forwards alone, and no gradient is sent to them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from benchmarks.matrix.exact.cells import BACKWARD, Cell, Once, Shape
from benchmarks.matrix.exact.walks import walks


def frozen_stages(document: Mapping[str, Any]) -> Set[int]:
    """The first stages of each walk, as many as the file says."""
    count = document.get("frozen") or 0
    return {step.stage for walk in walks(document)[0] for step in walk[:count]}


def freeze(cell: Cell) -> None:
    """A forward alone, which leaves nothing for later."""
    cell.frozen = True
    cell.backward = [spec._replace(time=0 * spec.time) for spec in cell.backward]
    cell.weight = None if cell.weight is None else [spec._replace(time=0 * spec.time) for spec in cell.weight]
    cell.fused = [spec._replace(time=0 * spec.time) for spec in cell.fused]
    cell.activation = cell.freed = 0 * cell.activation
    cell.workspace, cell.until_end = (
        (amounts[0], 0 * amounts[1], 0 * amounts[2]) for amounts in (cell.workspace, cell.until_end)
    )


def untrained(own: Once) -> Once:
    """Without gradients there is nothing to reduce, and no step."""
    reduce, step = (one and one._replace(time=0 * one.time) for one in (own.reduce, own.step))
    return own._replace(reduce=reduce, step=step, trained=False)


def without_gradients(shape: Shape) -> None:
    """Nothing waits for gradients of frozen stages, and they wait for none."""
    shape.ties = [tie for tie in shape.ties if not (tie.other.frozen and tie.other_kind == BACKWARD)]
