"""The orders that may end below a value, followed to their end by dynamic programming, a step a layer."""

from __future__ import annotations

from threading import Event
from typing import NamedTuple

import numpy as np

from solver.bounds.crossing_below.fewer import fewer
from solver.bounds.crossing_below.layers import successors_below
from solver.bounds.crossing_below.remaining import Remaining
from solver.bounds.crossing_blocks.bound import Labels, _joined
from solver.bounds.crossing_steps.layers import Layer, _slices
from solver.bounds.crossing_steps.moves import NEVER
from solver.bounds.crossing_steps.steps import Steps

# Labels looked at by one call of compiled code, which nothing can interrupt.
_AT_ONCE = 50_000


class Least(NamedTuple):
    """The least ticks from the first step to the end of what counts, or the value if that is less; the labels seen.

    None where these were too many.
    """

    ticks: int | None
    work: int


class _Followed(NamedTuple):
    """What may end below the value after one step more, and after a block; the least end; how many labels were seen."""

    near: list[Labels]
    far: list[Labels]
    ended: int
    seen: int


def least_below(steps: Steps, rest: Remaining, width: int, value: int, work: int, stop: Event) -> Least:
    """The least end of the orders that are followed; of those left out, the value."""
    none = Labels(np.empty(0, np.int64), np.empty((0, steps.in_flight + 2 * len(steps.room)), np.int32))
    layer = Layer(np.zeros(1, np.int64), np.array([0, 1], np.int64), np.zeros((1, none.labels.shape[1]), np.int32))
    best, used, done, further = NEVER, 0, 0, none
    while len(layer.keys) or len(further.keys):
        found = _followed(layer, steps, rest, done, value, stop)
        best, used, done = min(best, found.ended), used + found.seen, done + 1
        if used > work or stop.is_set():
            return Least(None, used)
        now, further = _joined([further, *found.near]), _joined([none, *found.far])
        order = np.argsort(now.keys, kind="stable")
        layer = Layer(*fewer(now.keys[order], now.labels[order], width))
    return Least(min(best, value), used)


def _followed(layer: Layer, steps: Steps, rest: Remaining, done: int, value: int, stop: Event) -> _Followed:
    near, far, ended, seen = list[Labels](), list[Labels](), NEVER, 0
    rests = [*rest.layers[done + 1 : done + 3], rest.layers[-1]]  # no block follows the last step but one
    for since, until in _slices(layer.first, _AT_ONCE // (steps.in_flight + 1)):
        if stop.is_set():
            break
        keys, labels, far_keys, far_labels, least, looked_at = successors_below(
            layer, since, until, steps, rest.blocks, done, rests[0], rests[1], value
        )
        near.append(Labels(keys, labels))
        far.append(Labels(far_keys, far_labels))
        ended, seen = min(ended, least), seen + looked_at
    return _Followed(near, far, ended, seen)
