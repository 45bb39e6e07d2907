"""How long the rest takes at least from every state of every layer: one pass backwards with one label a state.

The value of an order is the largest, over all times of its label, of the time and what takes its place at the end: each
step changes the times by sums and maxima only. So that rest is known for each time of a label, and over all steps that
may be next the least of each is taken.
"""

from __future__ import annotations

from threading import Event
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from solver.bounds.crossing_steps.steps import Numbers, Steps

Short = NDArray[np.int32]

# What a time that decides nothing adds, and what is more than any rest: so that sums fit into 32 bits.
NOTHING, ENDLESS = -(2**29), 2**29
_NOT_NEXT = -2


class Remaining(NamedTuple):
    """By number of steps done: the keys of states, sorted, and by state and time of a label what follows at least."""

    keys: list[Numbers]
    rests: list[Short]


def remaining(steps: Steps, most: int, stop: Event) -> Remaining | None:
    """None where there are more than so many numbers, or numbers that are too large, or after a stop."""
    count, devices = len(steps.ticks) * steps.microbatches, len(steps.room)
    longest = steps.microbatches * int(steps.ticks.sum() + steps.later.sum() + steps.lag.sum())
    size, keys = steps.in_flight + 2 * devices, [np.zeros(1, np.int64)]
    for done in range(count):
        keys.append(np.unique(keys_after(keys[-1], steps, done)))
        most -= size * len(keys[-1])
        if most < 0 or longest >= ENDLESS or stop.is_set():
            return None
    last = np.full((len(keys[-1]), size), NOTHING, np.int32)
    last[:, steps.in_flight + devices :][:, slice(None) if steps.makespan else slice(1)] = 0
    rests = [last]
    for done in reversed(range(count)):
        rests.append(rests_before(keys[done], steps, done, keys[done + 1], rests[-1]))
        if stop.is_set():
            return None
    return Remaining(keys, rests[::-1])


@njit(cache=True, nogil=True)
def keys_after(keys: Numbers, steps: Steps, done: int) -> Numbers:
    """The states after each step that may be next; the same one more than once."""
    count, found = len(steps.ticks), 0
    ran, pending, more = np.zeros(count, np.int64), np.zeros(count, np.int64), _more(steps)
    out = np.empty(len(keys) * count, np.int64)
    for state in range(len(keys)):
        _next_steps(keys[state], steps, done, ran, pending)
        for step in range(count):
            if pending[step] != _NOT_NEXT:
                out[found] = keys[state] + more[step]
                found += 1
    return out[:found]


@njit(cache=True, nogil=True)
def rests_before(keys: Numbers, steps: Steps, done: int, keys_next: Numbers, rests: Short) -> Short:
    """What follows from each state, of what follows after each step that may be next."""
    most, count, whole = steps.in_flight, len(steps.ticks), steps.in_flight + len(steps.room)
    found = np.full((len(keys), rests.shape[1]), ENDLESS, np.int32)
    ran, pending, more = np.zeros(count, np.int64), np.zeros(count, np.int64), _more(steps)
    row = np.zeros(rests.shape[1], np.int64)
    for state in range(len(keys)):
        _next_steps(keys[state], steps, done, ran, pending)
        for step in range(count):
            if pending[step] == _NOT_NEXT:
                continue
            rest = rests[np.searchsorted(keys_next, keys[state] + more[step])]
            one, shift = ran[step], 1 if step == count - 1 else 0
            device, ticks = steps.device[step], steps.ticks[step]
            started = max(ticks + rest[most + device], ticks + steps.later[step] + rest[whole + device])
            if not shift:
                started = max(started, ticks + rest[one])
            for other in range(most, len(row)):
                started = max(started, np.int64(rest[other]))  # nothing starts before this step does
                row[other] = rest[other]
            for other in range(most):
                row[other] = rest[other - shift] if shift <= other < ran[0] else NOTHING
            if step > 0:
                row[one] = started + steps.lag[step]
            row[most + device] = started
            row[whole + device] += ticks + steps.later[step]
            if pending[step] >= 0:
                row[whole + device] = max(row[whole + device], started - pending[step] * steps.longest[device])
            for other in range(len(row)):
                found[state, other] = max(NOTHING, min(np.int64(found[state, other]), row[other]))
    return found


@njit(cache=True, nogil=True)
def below(keys: Numbers, labels: Numbers, keys_of: Numbers, rests: Short, value: int) -> NDArray[np.bool_]:
    """Which labels may end below a value, for all that is known of the rest."""
    found = np.ones(len(keys), np.bool_)
    for label in range(len(keys)):
        rest = rests[np.searchsorted(keys_of, keys[label])]
        for entry in range(labels.shape[1]):
            found[label] &= labels[label, entry] + rest[entry] < value
    return found


@njit(cache=True, nogil=True)
def _next_steps(key: int, steps: Steps, done: int, ran: Numbers, pending: Numbers) -> None:
    """Fill in how many micro-batches in flight have done each step, and how many weight passes may wait when it starts.

    The latter is -1 where memory does not say, and `_NOT_NEXT` where the step may not be next: nothing comes to it, or
    memory has no place for it, or would have none for the forwards of the oldest micro-batch that has some left.
    """
    count = len(ran)
    for step in range(count - 1):
        ran[step] = key % (steps.in_flight + 1)
        key //= steps.in_flight + 1
    begun = (done - ran.sum()) // count + ran[0]
    for step in range(count):
        device, takes = steps.device[step], steps.takes[step]
        if step == 0:
            pending[step] = -1 if begun < steps.microbatches and ran[0] < steps.in_flight else _NOT_NEXT
        else:
            pending[step] = -1 if ran[step - 1] > ran[step] else _NOT_NEXT
        if pending[step] == _NOT_NEXT or takes <= 0 or steps.room[device] < 0:
            continue
        oldest, held, younger, room = ran[steps.forward[device]], 0, 0, steps.room[device] - takes
        for n in range(count):
            if steps.device[n] == device:
                held += steps.takes[n] * ran[n]
                younger += steps.takes[n] * max(0, ran[n] - oldest - 1)
        if held > room or (oldest < ran[step] and younger + steps.whole[device] > room):
            pending[step] = _NOT_NEXT
        elif steps.waiting[device] > 0:
            pending[step] = (room - held) // steps.waiting[device]


@njit(cache=True, nogil=True)
def _more(steps: Steps) -> Numbers:
    """By how much each step raises the key of a state."""
    found = np.append(steps.place[1:], -steps.place.sum())
    return found.astype(np.int64)
