"""The orders that may end below a value, for all that a guide says, followed to their end, a step a layer, compiled."""

from __future__ import annotations

from threading import Event

import numpy as np
from numba import njit

from solver.bounds.crossing_below.follow import Least
from solver.bounds.crossing_guided.guide import Guide
from solver.bounds.crossing_guided.moves import look_up, may_end_below
from solver.bounds.crossing_steps.layers import Layer, _slices, merged
from solver.bounds.crossing_steps.moves import NEVER, positions_of, raise_times, take_step, waiting_at
from solver.bounds.crossing_steps.steps import Numbers, Steps

# Labels looked at by one call of compiled code, which nothing can interrupt.
_AT_ONCE = 100_000


def least_guided(steps: Steps, guide: Guide, width: int, value: int, work: int, stop: Event) -> Least:
    """The least end of the orders that are followed; of those left out, the value."""
    labels = np.zeros((1, steps.in_flight + 2 * len(steps.room)), np.int64)
    layer = Layer(np.zeros(1, np.int64), np.array([0, 1], np.int64), labels)
    best, used, done = NEVER, 0, 0
    while len(layer.keys):
        parts = [(np.empty(0, np.int64), labels[:0])]
        for since, until in _slices(layer.first, _AT_ONCE // (steps.in_flight + 1)):
            keys, found, ended, seen = successors_in_time(layer, since, until, steps, done, guide, value)
            parts.append((keys, found))
            best, used = min(best, ended), used + seen
            if used > work or stop.is_set():
                return Least(None, used)
        keys, found = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(keys, kind="stable")
        layer, done = Layer(*merged(keys[order], found[order], width)[:3]), done + 1
    return Least(min(best, value), used)


@njit(cache=True, nogil=True)
def successors_in_time(
    layer: Layer, since: int, until: int, steps: Steps, done: int, guide: Guide, value: int
) -> tuple[Numbers, Numbers, int, int]:
    """What the labels of some states become by each step that may be next and may end below the value.

    Their keys, the labels, the least value of those that have come to the end, and how many labels were looked at.
    """
    keys, first, labels = layer
    most, size = steps.in_flight, labels.shape[1]
    # Where no more fit, twice as many: most are left out.
    out_keys = np.empty(2 * (first[until] - first[since]) + 1, np.int64)
    out = np.empty((len(out_keys), size), np.int64)
    at, after, place = np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64), np.zeros(3, np.int64)
    found, seen, ended = 0, 0, np.int64(NEVER)
    for state in range(since, until):
        flying = positions_of(keys[state], steps, at)
        begun = (done - at[:flying].sum()) // len(steps.ticks) + flying
        for one in range(flying + 1):
            if one == flying and (begun == steps.microbatches or flying == most):
                continue
            if 0 < one < flying and at[one - 1] <= at[one]:
                continue  # in turn
            step = 0 if one == flying else at[one]
            pending = waiting_at(steps, at, flying, one, step)
            if pending == -2:
                continue  # a gradient of this device comes first
            through, now_begun = one == 0 and step == len(steps.ticks) - 1, begun + (one == flying)
            key = keys[state] - steps.place.sum() if through else keys[state] + steps.place[step + 1]
            left = positions_of(key, steps, after)
            if not look_up(guide, after, left, now_begun, place):
                continue  # memory of the fewer stages leads to no end
            many = first[state + 1] - first[state]
            if found + many > len(out):
                wider = 2 * len(out) + many
                more_keys, more = np.empty(wider, np.int64), np.empty((wider, size), np.int64)
                more_keys[:found], more[:found] = out_keys[:found], out[:found]
                out_keys, out = more_keys, more
            seen += many
            for label in range(first[state], first[state + 1]):
                new = out[found]
                new[:] = labels[label]
                take_step(new, one, step, pending, steps, one < flying)
                if through:
                    new[: most - 1] = labels[label, 1:most]
                    new[most - 1] = 0
                raise_times(new, after, left, now_begun < steps.microbatches, steps)
                if left == 0 and now_begun == steps.microbatches:
                    ended = min(ended, new[most + len(steps.room)])
                elif may_end_below(new, after, place, guide, most, value):
                    out_keys[found] = key
                    found += 1
    return out_keys[:found], out[:found], int(ended), seen
