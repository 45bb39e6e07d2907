"""Which labels of a state stay, compiled: all but those than which another is at least as good."""

from __future__ import annotations

import numpy as np
from numba import njit

from solver.backends.compiled import inner
from solver.diagram.steps import Numbers, Steps
from solver.diagram.whole_weights.weights import Weights


@njit(cache=True, nogil=True)
def best_of(
    keys: Numbers, labels: Numbers, steps: Steps, weights: Weights, most: int
) -> tuple[Numbers, Numbers, Numbers]:
    """States of labels sorted by key, where those of each begin, and the numbers of the labels that stay.

    Without those that another one of the state is as good as; no states where more than `most` of one would stay.
    """
    states, first = np.empty(len(keys), np.int64), np.zeros(len(keys) + 1, np.int64)
    kept = np.empty(len(keys), np.int64)
    found = total = since = 0
    while since < len(keys):
        until, begin = since, total
        while until < len(keys) and keys[until] == keys[since]:
            until += 1
        for number in np.argsort(_sums(labels[since:until], steps, weights), kind="mergesort"):
            label, needed = labels[since + number], True
            for other in range(begin, total):
                if as_good(labels[kept[other]], label, steps, weights):
                    needed = False
                    break
            if needed and total - begin == most:
                return states[:0].copy(), first[:1].copy(), kept[:0].copy()
            if needed:
                kept[total] = since + number
                total += 1
        states[found] = keys[since]
        found, since = found + 1, until
        first[found] = total
    return states[:found].copy(), first[: found + 1].copy(), kept[:total].copy()


@njit(cache=True, nogil=True)
def _sums(labels: Numbers, steps: Steps, weights: Weights) -> Numbers:
    """Of all times of each label, with those of the weight passes that wait."""
    times, found = steps.in_flight + 2 * len(steps.room), np.zeros(len(labels), np.int64)
    for number in range(len(labels)):
        found[number] = labels[number, :times].sum() + (labels[number, times:] * weights.ticks).sum()
    return found


@inner
def as_good(one, other, steps, weights):  # type: ignore[no-untyped-def]
    """Whether what follows from one label ends no later than what follows from another of the same state."""
    most, devices = steps.in_flight, len(steps.room)
    for time in range(most + devices):
        if one[time] > other[time]:
            return False
    for device in range(devices):  # noqa: SIM110 - Numba compiles no generator
        if not _device_as_good(one, other, device, steps, weights):
            return False
    return True


@inner
def _device_as_good(one, other, device, steps, weights):  # type: ignore[no-untyped-def]
    """Whether a device could have run too what waits for it and not for the other, or lost nothing by what it ran."""
    most, devices = steps.in_flight, len(steps.room)
    at, now = most + 2 * devices, most + devices + device
    ended, fewer, early = one[now], True, one[now] <= other[most + device]
    for kind in range(weights.first[device], weights.first[device + 1]):
        more = one[at + kind] - other[at + kind]
        ended += max(0, more) * weights.ticks[kind]
        fewer = fewer and more <= 0
        if one[at + kind] > 0 and one[now] > other[now] - more * weights.ticks[kind]:
            early = False
    return ended <= other[now] or (fewer and early)
