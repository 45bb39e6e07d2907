"""Orders with whole weight passes on some devices for so many steps, then with ones that may be interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

import numpy as np

from solver.bounds.crossing_below.moves import NONE
from solver.bounds.crossing_below.remaining import NOTHING, Rests, keys_after
from solver.bounds.crossing_steps.bound import Least, first_layer, least_value
from solver.bounds.crossing_steps.layers import Layer, _slices, merged
from solver.bounds.crossing_steps.moves import NEVER
from solver.bounds.crossing_steps.steps import Numbers, Steps
from solver.bounds.crossing_whole.layers import Longer, longer
from solver.bounds.crossing_whole.stay import best_of
from solver.bounds.crossing_whole.weights import Weights, weights_of

# Labels looked at by one call of compiled code, which nothing can interrupt; and labels of a state that are compared.
_AT_ONCE, _OF_A_STATE = 10_000, 20_000


def least_with_some_whole(steps: Steps, whole: Sequence[int], many: int, width: int, work: int, stop: Event) -> Least:
    """The least end where these of the steps' devices interrupt no weight pass in front of the first so many steps."""
    weights, used, merges = weights_of(steps, whole), 0, False
    layer = first_layer(steps.in_flight + 2 * len(steps.room) + len(weights.ticks))
    for done in range(many):
        found = _after_a_step(layer, steps, weights, done, width, stop)
        if found is None or used + found[1] > work:
            return Least(None, used, True)
        layer, used, merges = found[0], used + found[1], merges or found[2]
    labels = interruptible(layer.labels, steps, weights)
    keys = np.repeat(layer.keys, np.diff(layer.first))
    *parts, merges_here = merged(keys, labels, width)
    rest = least_value(steps, width, work - used, stop, begun=(Layer(*parts), many))
    return Least(rest.ticks, used + rest.work, rest.merged or merges or merges_here)


def _after_a_step(
    layer: Layer, steps: Steps, weights: Weights, done: int, width: int, stop: Event
) -> tuple[Layer, int, bool] | None:
    """The next layer, how many labels were looked at, and whether any were merged; None after a stop or of too many."""
    blocks = np.full((len(steps.ticks), len(steps.ticks)), NONE, np.int64)
    after = np.unique(keys_after(layer.keys, steps, blocks, done)[0])
    # Whatever follows, no label is left out.
    follows = Rests(after, np.full((len(after), steps.in_flight + 2 * len(steps.room)), NOTHING, np.int32))
    parts, seen = [], 0
    for since, until in _slices(layer.first, _AT_ONCE):
        if stop.is_set():
            return None
        parts.append(Longer(*longer(layer, since, until, steps, weights, follows, NEVER, done)))
        seen += parts[-1].seen
    keys, labels = (np.concatenate(column) for column in ([part[n] for part in parts] for n in (0, 1)))
    order = np.argsort(keys, kind="stable")
    states, first, kept = best_of(keys[order], labels[order], steps, weights, _OF_A_STATE)
    if not len(states):
        return None
    best = labels[order[kept]]
    if int(np.diff(first).max()) <= width:
        return Layer(states, first, best), seen, False
    *fewer, merges = merged(np.repeat(states, np.diff(first)), best, width)
    return Layer(*fewer), seen, merges


def interruptible(labels: Numbers, steps: Steps, weights: Weights) -> Numbers:
    """The same labels where weight passes may be interrupted: when each device would have run what waits too."""
    times = steps.in_flight + 2 * len(steps.room)
    found = labels[:, :times].copy()
    for device in range(len(steps.room)):
        free, over = steps.in_flight + device, times - len(steps.room) + device
        kinds = slice(weights.first[device], weights.first[device + 1])
        found[:, over] += labels[:, times:][:, kinds] @ weights.ticks[kinds]
        found[:, over] = np.maximum(found[:, over], found[:, free])
    return found
