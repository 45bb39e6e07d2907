"""The orders with whole weight passes that may end below a value, followed to their end, a step a layer."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import NamedTuple

import numpy as np

from solver.diagram.completion import Rests
from solver.diagram.layers import Layer, first_layer, slices
from solver.diagram.steps import Numbers, Steps
from solver.diagram.transitions import NEVER
from solver.diagram.whole_weights.layers import Longer, longer
from solver.diagram.whole_weights.stay import best_of
from solver.diagram.whole_weights.weights import Weights, weights_of

# Labels kept of a layer, and of a state, since each is compared with all others of its state; and from which one call
# of compiled code goes on, which nothing can interrupt.
_OF_A_LAYER, _OF_A_STATE, _AT_ONCE = 30_000, 2_000, 10_000


class Least(NamedTuple):
    """The least ticks to the end of what counts, or the value if that is less; None after too much work, or a stop.

    The choices that end then, if that is below the value; and how many labels were looked at.
    """

    ticks: int | None
    order: tuple[int, ...] | None
    work: int


class _Traces(NamedTuple):
    """By layer, the label before each and the choice by which it came; the least end with its own, as it was found."""

    layers: list[tuple[Numbers, Numbers]]
    ends: list[tuple[int, int, int, int]]


def least_of_whole(steps: Steps, rest: Sequence[Rests], value: int, work: int, stop: Event) -> Least:
    """Over all orders of the steps, of those that may end below a value."""
    weights, devices, used = weights_of(steps), len(steps.room), 0
    size = steps.in_flight + 2 * devices + len(weights.ticks)
    layer = first_layer(size)
    traces = _Traces([], [])
    for done, follows in enumerate(rest[1:]):
        parts = _after_a_step(layer, steps, weights, follows, value, done, stop)
        used += sum(part.seen for part in parts)
        if used > work or stop.is_set():
            return Least(None, None, used)
        traces.ends.extend((part.ended, done, part.end_before, part.end_taken) for part in parts if part.ended < NEVER)
        if not sum(len(part.keys) for part in parts):
            break
        kept = _kept(parts, steps, weights, traces)
        if kept is None:
            return Least(None, None, used)
        layer = kept
    ended = min(traces.ends, default=(NEVER, 0, -1, -1))
    return Least(value, None, used) if ended[0] >= value else Least(ended[0], _traced(traces.layers, ended), used)


def _after_a_step(
    layer: Layer, steps: Steps, weights: Weights, follows: Rests, value: int, done: int, stop: Event
) -> list[Longer]:
    """What labels become, of some states after the other."""
    parts = list[Longer]()
    for since, until in slices(layer.first, _AT_ONCE):
        if stop.is_set():
            break
        parts.append(Longer(*longer(layer, since, until, steps, weights, follows, value, done)))
    return parts


def _kept(parts: Sequence[Longer], steps: Steps, weights: Weights, traces: _Traces) -> Layer | None:
    """The layer of them, without labels that others are as good as; None where these are too many."""
    keys, labels, before, taken = (np.concatenate(column) for column in list(zip(*parts, strict=True))[:4])
    order = np.argsort(keys, kind="stable")
    states, first, kept = best_of(keys[order], labels[order], steps, weights, _OF_A_STATE)
    kept = order[kept]
    if not len(states) or len(kept) > _OF_A_LAYER:
        return None
    traces.layers.append((before[kept], taken[kept]))
    return Layer(states, first, labels[kept])


def _traced(layers: Sequence[tuple[Numbers, Numbers]], ended: tuple[int, int, int, int]) -> tuple[int, ...]:
    """The choices that lead to an end."""
    _, done, label, last = ended
    found = [last]
    for before, taken in reversed(layers[:done]):
        found.append(int(taken[label]))
        label = int(before[label])
    return tuple(reversed(found))
