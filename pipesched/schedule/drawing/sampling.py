"""Sampling of one row of a Gantt chart with fewer columns than boxes: each column shows one of its kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeVar

Kind = TypeVar("Kind", bound=Hashable)


def sampled(boxes: Iterable[tuple[float, float, Kind]], columns: int) -> list[Kind | None]:
    """Return the kind shown in each column; None is idle. Boxes are (start, end, kind), with times in columns.

    Only kinds whose share of the column is at least a third of the largest can be shown; among them that is chosen
    which has been shown least for its time so far, so that along the row kinds are in proportion to time.
    """
    owed: Counter[Kind | None] = Counter()
    chosen: list[Kind | None] = []
    for shares in _shares(boxes, columns):
        for kind, share in shares.items():
            owed[kind] = min(owed[kind] + share, 1.5)  # type: ignore[assignment]
        least = max(shares.values()) / 3
        best = max((kind for kind, share in shares.items() if share >= least), key=lambda kind: owed[kind])
        owed[best] -= 1
        chosen.append(best)
    return chosen


def _shares(boxes: Iterable[tuple[float, float, Kind]], columns: int) -> list[dict[Kind | None, float]]:
    """Return for each column the share of its time that each kind takes; None is idle."""
    found: list[dict[Kind | None, float]] = [{} for _ in range(columns)]
    for begin, finish, kind in boxes:
        start, end = max(0.0, begin), min(finish, float(columns))
        for column in range(int(start), min(int(end) + 1, columns)):
            share = min(end, column + 1) - max(start, column)
            if share > 0:
                found[column][kind] = found[column].get(kind, 0.0) + share
    for shares in found:
        idle = 1 - sum(shares.values())
        if idle > 1e-9 or not shares:
            shares[None] = idle
    return found
