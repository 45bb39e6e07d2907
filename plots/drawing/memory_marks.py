"""Shared parts of pictures of memory over time: their colours, and the steps of a strip."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

AREA, OUTLINE, CAP, OVER = "#a9c6e3", "#2f5f91", "#c0392b", "#c0392b"
HOST = "#7d5ba6"
STATIC = "#8f98a3"


def without_notches(steps: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Without dips that last no time, as where a forward takes what a backward just gave back; spikes are kept."""
    for tick, group in groupby(steps, key=itemgetter(0)):
        levels = [level for _, level in group]
        yield tick, max(levels)
        yield tick, levels[-1]
