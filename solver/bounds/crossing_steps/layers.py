"""One layer of a relaxed decision diagram, compiled: every state takes one step more, and many labels are merged.

A state says how many steps each micro-batch in flight has done; a label, how early that can be reached: when the last
step of each of them ended, the oldest first, then for each device when its next step can start at the earliest, and
when it would be free with all weight passes done. Steps are taken in the order of their starts: so no device starts
anything before the last step did. States are sorted by keys, and labels by their sums, so that a layer does not depend
on the order in which it was made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from solver.bounds.crossing_steps.moves import NEVER, positions_of, raise_times, take_step, waiting_at
from solver.bounds.crossing_steps.steps import Numbers, Steps


class Layer(NamedTuple):
    """States by key, with their labels: `labels[first[n]:first[n + 1]]` are those of state n."""

    keys: Numbers
    first: Numbers
    labels: Numbers


def _slices(first: Numbers, most: int) -> Iterator[tuple[int, int]]:
    """Consecutive states with about so many labels at once, one state at least."""
    since = 0
    while since < len(first) - 1:
        until = max(since + 1, int(np.searchsorted(first, first[since] + most, side="right")) - 1)
        yield since, until
        since = until


@njit(cache=True, nogil=True)
def successors(layer: Layer, since: int, until: int, steps: Steps, done: int) -> tuple[Numbers, Numbers, int]:
    """What the labels of some states become by each step that may be next, `done` steps after the start.

    Their keys, the labels, and the least value of those that have come to the end.
    """
    keys, first, labels = layer
    most, devices, count = steps.in_flight, len(steps.room), len(steps.ticks)
    size = (first[until] - first[since]) * (most + 1)
    out_keys, out = np.empty(size, np.int64), np.empty((size, labels.shape[1]), np.int64)
    at, after = np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
    found, ended = 0, np.int64(NEVER)
    for state in range(since, until):
        flying = positions_of(keys[state], steps, at)
        begun = (done - at[:flying].sum()) // count + flying
        for one in range(flying + 1):
            if one == flying and (begun == steps.microbatches or flying == most):
                continue
            if 0 < one < flying and at[one - 1] <= at[one]:
                continue  # in turn
            step = 0 if one == flying else at[one]
            pending = waiting_at(steps, at, flying, one, step)
            if pending == -2:
                continue  # a gradient of this device comes first
            through, now_begun = one == 0 and step == count - 1, begun + (one == flying)
            key = keys[state] - steps.place.sum() if through else keys[state] + steps.place[step + 1]
            left = positions_of(key, steps, after)
            for label in range(first[state], first[state + 1]):
                new = out[found]
                new[:] = labels[label]
                take_step(new, one, step, pending, steps, one < flying)
                if through:
                    new[: most - 1] = labels[label, 1:most]
                    new[most - 1] = 0
                if left == 0 and now_begun == steps.microbatches:
                    ends = new[most + devices :]
                    ended = min(ended, ends.max() if steps.makespan else ends[0])
                    continue
                raise_times(new, after, left, now_begun < steps.microbatches, steps)
                out_keys[found] = key
                found += 1
    return out_keys[:found], out[:found], int(ended)


@njit(cache=True, nogil=True)
def merged(keys: Numbers, labels: Numbers, width: int) -> tuple[Numbers, Numbers, Numbers, bool]:
    """A layer of these labels, sorted by key: those of a state that no other is below, the largest of them merged.

    The `width` first by their sums, then as words in a dictionary, stay; each other one makes the one that it is least
    below earlier: a merged label has the least of every time. Last, whether any were merged.
    """
    states, first = np.empty(len(keys), np.int64), np.zeros(len(keys) + 1, np.int64)
    kept = np.empty_like(labels)
    found = total = since = 0
    merges = False
    while since < len(keys):
        until = since
        while until < len(keys) and keys[until] == keys[since]:
            until += 1
        states[found] = keys[since]
        total, more = _reduced(labels[since:until], width, kept, total)
        merges = merges or more
        found, since = found + 1, until
        first[found] = total
    return states[:found].copy(), first[: found + 1].copy(), kept[:total].copy(), merges


@njit(cache=True, nogil=True)
def _reduced(labels: Numbers, width: int, kept: Numbers, total: int) -> tuple[int, bool]:
    """Append what stays of the labels of one state; how many labels there are then, and whether some were merged."""
    begin, size = total, labels.shape[1]
    for number in _sorted(labels):
        below = False
        for other in range(begin, total):
            below = below or _nowhere_later(kept[other], labels[number])
        if not below:
            kept[total] = labels[number]
            total += 1
    if total - begin <= width:
        return total, False
    stay = kept[begin : begin + width].copy()
    for other in range(begin + width, total):
        nearest, least = 0, np.int64(NEVER)
        for one in range(width):
            below_by = np.int64(0)
            for entry in range(size):
                below_by += max(0, stay[one, entry] - kept[other, entry])
            if below_by < least:
                nearest, least = one, below_by
        for entry in range(size):
            kept[begin + nearest, entry] = min(kept[begin + nearest, entry], kept[other, entry])
    return begin + width, True


@njit(cache=True, nogil=True)
def _sorted(labels: Numbers) -> Numbers:
    """The numbers of the labels by sum, then as words in a dictionary."""
    sums = labels.sum(axis=1)
    order = np.argsort(sums, kind="mergesort")
    for place in range(1, len(order)):
        at = place
        while at > 0 and sums[order[at - 1]] == sums[order[at]] and _before(labels[order[at]], labels[order[at - 1]]):
            order[at - 1], order[at] = order[at], order[at - 1]
            at -= 1
    return order


@njit(cache=True, nogil=True)
def _nowhere_later(one: Numbers, other: Numbers) -> bool:
    for entry in range(len(one)):  # noqa: SIM110 - Numba compiles no generator
        if one[entry] > other[entry]:
            return False
    return True


@njit(cache=True, nogil=True)
def _before(one: Numbers, other: Numbers) -> bool:
    for entry in range(len(one)):
        if one[entry] != other[entry]:
            return bool(one[entry] < other[entry])
    return False
