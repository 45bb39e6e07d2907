"""One layer of the orders with whole weight passes, compiled: every label takes one step more in every way there is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from solver.backends.compiled import inner
from solver.diagram.completion import Rests
from solver.diagram.layers import Layer
from solver.diagram.moves import moves_from, positions_of, raised_by
from solver.diagram.steps import Numbers, Steps
from solver.diagram.transitions import NEVER
from solver.diagram.whole_weights.choices import advance, all_done, is_needed, next_choice, ready_at, settle
from solver.diagram.whole_weights.weights import Weights


class Longer(NamedTuple):
    """Labels after a step more with their keys, and the end that is least of those that have come to it.

    Each label comes from the label `before` by the choice `taken`: its number of the step's choices, times the number
    of steps, and the step. So does the end, -1 where none has come. `seen` is how many were looked at.
    """

    keys: Numbers
    labels: Numbers
    before: Numbers
    taken: Numbers
    ended: int
    end_before: int
    end_taken: int
    seen: int


@njit(cache=True, nogil=True)
def longer(
    layer: Layer, since: int, until: int, steps: Steps, weights: Weights, rest: Rests, value: int, done: int
) -> tuple[Numbers, Numbers, Numbers, Numbers, int, int, int, int]:
    """What the labels of some states become by one step that may be next, and weight passes before it.

    Those that may end below the value; `rest` is what follows after the step, `done` how many steps were before.
    What is returned are the fields of `Longer`: named tuples are made by Python code (see `solver.backends.compiled`).
    """
    keys, first, labels = layer
    most, count, kinds = steps.in_flight, len(steps.ticks), len(weights.ticks)
    begun, may, moves = np.zeros(count, np.int64), np.zeros(count, np.int64), np.empty((count, 2), np.int64)
    after, ran, raised = np.zeros(most + 1, np.int64), np.zeros(kinds, np.int64), raised_by(steps)
    out_keys, out = np.empty(1024, np.int64), np.empty((1024, labels.shape[1]), np.int64)
    before, taken = np.empty(1024, np.int64), np.empty(1024, np.int64)
    found, seen, ended, end_before, end_taken = 0, 0, np.int64(NEVER), -1, -1
    for state in range(since, until):
        for move in range(moves_from(keys[state], steps, done, begun, may, moves)):
            step = moves[move, 0]
            one, pending, through = begun[step], may[step], step == count - 1
            more = (done - begun.sum()) // count + begun[0] + (step == 0) < steps.microbatches
            key = keys[state] + raised[step]
            left = positions_of(key, steps, after)
            follows = rest.rests[np.searchsorted(rest.keys, key)]
            since_kind, until_kind = weights.first[steps.device[step]], weights.first[steps.device[step] + 1]
            for number in range(first[state], first[state + 1]):
                label = labels[number]
                ready, again, choice = ready_at(label, one, step, steps, step > 0), True, step
                while again:
                    if is_needed(ran, label, step, ready, pending, steps, weights):
                        if found == len(out):
                            out_keys, out = np.append(out_keys, out_keys), np.concatenate((out, out))
                            before, taken = np.append(before, before), np.append(taken, taken)
                        new, seen = out[found], seen + 1
                        new[:] = label
                        advance(new, ran, one, step, ready, pending, steps, weights)
                        if left == 0 and not more:
                            end = _value(new, steps, weights)
                            if end < ended:
                                ended, end_before, end_taken = end, number, choice
                        else:
                            settle(new, through, after, left, more, steps, weights)
                            if _may_end_below(new, follows, value, steps, weights):
                                out_keys[found], before[found], taken[found] = key, number, choice
                                found += 1
                    choice += count
                    again = next_choice(ran, label, len(label) - kinds, since_kind, until_kind)
    keys, labels = out_keys[:found].copy(), out[:found].copy()
    return keys, labels, before[:found].copy(), taken[:found].copy(), int(ended), end_before, end_taken, seen


@inner
def _value(label, steps, weights):  # type: ignore[no-untyped-def]
    """When all that counts has ended."""
    value = all_done(label, 0, steps, weights)
    if steps.makespan:
        for device in range(1, len(steps.room)):
            value = max(value, all_done(label, device, steps, weights))
    return value


@inner
def _may_end_below(label, follows, value, steps, weights):  # type: ignore[no-untyped-def]
    """Whether no time of a label and what follows it come to the value."""
    devices, most = len(steps.room), steps.in_flight
    for time in range(most + devices):
        if label[time] + follows[time] >= value:
            return False
    for device in range(devices):
        if all_done(label, device, steps, weights) + follows[most + devices + device] >= value:
            return False
    return True
