"""Dispatching of tasks by a policy, compiled: whenever a stream is free it begins what comes first of what is ready.

Urgent tasks come first, then classes in turn, in each the lowest rank. Nothing begins that would still run when an
urgent task gets ready that is worth waiting for. A forward begins on a stage only while few enough micro-batches are
under way there; what takes memory waits for room.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from solver.backends.compiled import inner
from solver.tasks.serial_kernel import pop, push

Array = Any  # numpy arrays, of one dimension unless said

# Classes of tasks.
URGENT, BACKWARD, FORWARD, WEIGHT = range(4)
# Urgent tasks that a stream may know of before they are ready; and tasks looked at to find one that is short enough.
_MOST_COMING, _MOST_ASIDE = 64, 12
# Streams that take of one memory at once.
_MOST_TAKING = 16


class Flow(NamedTuple):
    """What dispatching has to know of a problem besides `Shop`.

    By job: its stage, whether its stage's forward begins with it, and the passes of a stage and micro-batch behind the
    forward that it belongs to (-1: none), which are `parts` jobs each. By stage and by stream: the device. A `late`
    stream, the busiest of its device, decides when the others have: what they begin it may have to wait for.
    """

    stage: Array
    opens: Array
    behind: Array
    parts: Array
    device: Array
    stream_device: Array
    late: Array


class Decided(NamedTuple):
    """What a policy decides.

    By job its class, its rank, no two alike, and how long its stream waits for it if it is urgent; by stage how many
    micro-batches may be under way; by stream how many weight tasks may wait before they come second; by memory what
    forwards leave to others.
    """

    kind: Array
    rank: Array
    patience: Array
    most: Array
    stock: Array
    reserve: Array
    backwards_first: bool


class Taking(NamedTuple):
    """Of each memory the jobs that run and took of it: how many, which, and what would have been left for others when
    each began; and whether a job was refused on their account."""

    count: Array
    job: Array
    spare: Array
    refused: Array


@inner
def _until(now, r, coming, count, begin, heap, open_urgent, decided):  # type: ignore[no-untyped-def]
    """When what a stream begins now has to have ended, for an urgent task that gets ready soon."""
    limit = np.int64(2**62)
    for k in range(count[r]):
        n = coming[r, k]
        better = open_urgent == 0 or decided.rank[n] < decided.rank[heap[0]]
        if better and begin[n] <= now + decided.patience[n]:
            limit = min(limit, begin[n])
    return limit


@inner
def _fits(shop, flow, decided, n, under_way, level, taking):  # type: ignore[no-untyped-def]
    """Whether a job may begin: its stage has few enough micro-batches under way, and its memory room.

    While a job runs that takes memory, what other streams take counts for it too, since in other timings they may take
    it first: what has been given back since it began is not there for them.
    """
    if flow.opens[n] and under_way[flow.stage[n]] >= decided.most[flow.stage[n]]:
        return False
    m = shop.memory[n]
    if shop.takes[n] == 0 or shop.room[m] < 0:
        return True
    wanted = shop.takes[n] + (decided.reserve[m] if flow.opens[n] else 0)
    if level[m] + wanted > shop.room[m]:
        return False
    for k in range(taking.count[m]):
        if taking.count[m] == _MOST_TAKING or taking.spare[m, k] < shop.takes[n]:
            taking.refused[m] = True
            return False
    return True


@inner
def _take(shop, n, level, taking):  # type: ignore[no-untyped-def]
    """A job begins that takes memory."""
    m = shop.memory[n]
    level[m] += shop.takes[n]
    if shop.takes[n] == 0 or shop.room[m] < 0:
        return
    for k in range(taking.count[m]):
        taking.spare[m, k] -= shop.takes[n]
    k = taking.count[m]
    taking.job[m, k], taking.spare[m, k] = n, shop.room[m] - level[m]
    taking.count[m] += 1


@inner
def _taken(shop, n, taking):  # type: ignore[no-untyped-def]
    """A job that took memory has ended; whether others were refused meanwhile that may fit now."""
    m = shop.memory[n]
    if shop.takes[n] == 0 or shop.room[m] < 0:
        return False
    for k in range(taking.count[m]):
        if taking.job[m, k] == n:
            taking.count[m] -= 1
            last = taking.count[m]
            taking.job[m, k], taking.spare[m, k] = taking.job[m, last], taking.spare[m, last]
            break
    refused = taking.refused[m]
    taking.refused[m] = False
    return refused


@njit(cache=True, nogil=True)
def dispatch(shop, flow, decided, start):  # type: ignore[no-untyped-def]
    """Write the starts of all jobs; returns the last end, or -1 where nothing more can begin."""
    n_jobs, streams = shop.steps.shape[0], flow.stream_device.shape[0]
    devices = flow.stream_device.max() + 1
    missing, begin, left = shop.needs.copy(), np.zeros(n_jobs, np.int64), shop.size.copy()
    parts, under_way = flow.parts.copy(), np.zeros(flow.device.shape[0], np.int64)
    memories = shop.room.shape[0]
    level, shape = np.zeros(memories, np.int64), (memories, _MOST_TAKING)
    taking = Taking(
        np.zeros(memories, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(memories, np.bool_)
    )
    # Ends of jobs (n), and their getting ready (n_jobs + n), by time.
    times, events, n_events = np.zeros(2 * n_jobs, np.int64), np.zeros(2 * n_jobs + 2, np.int64), 0
    counts = np.zeros((streams, 4), np.int64)
    for n in range(n_jobs):
        counts[shop.stream[n], decided.kind[n]] += 1
    ready, open_jobs = np.zeros((streams, 4, counts.max() + 2), np.int64), np.zeros((streams, 4), np.int64)
    coming, n_coming = np.zeros((streams, _MOST_COMING), np.int64), np.zeros(streams, np.int64)
    held, n_held = np.zeros((devices, n_jobs + 1), np.int64), np.zeros(devices, np.int64)
    busy, touched = np.zeros(streams, np.bool_), np.zeros(streams, np.bool_)
    aside, now_open = np.zeros(_MOST_ASIDE, np.int64), np.zeros(streams, np.int64)
    for n in range(n_jobs):
        if missing[n] == 0:
            n_events = push(events, times, n_events, n_jobs + n)
    done = last = 0
    while n_events > 0:
        now, changed = times[events[0]], 0
        while n_events > 0 and times[events[0]] == now:
            event, n_events = pop(events, times, n_events)
            n = event % n_jobs
            r, device = shop.stream[n], flow.device[flow.stage[n]]
            if event >= n_jobs:
                kind = decided.kind[n]
                open_jobs[r, kind] = push(ready[r, kind], decided.rank, open_jobs[r, kind], n)
                for k in range(n_coming[r]):
                    if coming[r, k] == n:
                        n_coming[r] -= 1
                        coming[r, k] = coming[r, n_coming[r]]
                        break
            else:
                busy[r], last, done = False, now, done + 1
                freed, shared, g, whole = _taken(shop, n, taking), False, shop.group[n], flow.behind[n]
                if g >= 0:
                    left[g] -= 1
                    if left[g] == 0:
                        level[shop.given_to[g]] -= shop.gives[g]
                        freed, shared = True, shop.given_to[g] >= devices
                if whole >= 0:
                    parts[whole] -= 1
                    if parts[whole] == 0:
                        under_way[flow.stage[n]] -= 1
                        freed = True
                for d in range(devices if shared else 1 if freed else 0):
                    at = d if shared else device
                    for k in range(n_held[at]):
                        m = held[at, k]
                        other, kind = shop.stream[m], decided.kind[m]
                        open_jobs[other, kind] = push(ready[other, kind], decided.rank, open_jobs[other, kind], m)
                        if not touched[other]:
                            touched[other], now_open[changed], changed = True, other, changed + 1
                    n_held[at] = 0
            if not touched[r]:
                touched[r], now_open[changed], changed = True, r, changed + 1
        for late in (False, True):
            for at in range(changed):
                r = now_open[at]
                if flow.late[r] != late:
                    continue
                touched[r] = False
                if busy[r]:
                    continue
                limit = _until(now, r, coming, n_coming, begin, ready[r, 0], open_jobs[r, 0], decided)
                first = 1 if decided.backwards_first else 2
                chosen = -1
                for place in range(5):
                    kind = 0 if place == 0 else first if place == 1 else 3 - first if place == 3 else 3
                    if chosen >= 0 or (place == 2 and open_jobs[r, 3] < decided.stock[r]):
                        continue
                    n_aside = 0
                    while open_jobs[r, kind] > 0 and n_aside < _MOST_ASIDE:
                        n, open_jobs[r, kind] = pop(ready[r, kind], decided.rank, open_jobs[r, kind])
                        if now + shop.steps[n] > limit:
                            aside[n_aside], n_aside = n, n_aside + 1
                        elif not _fits(shop, flow, decided, n, under_way, level, taking):
                            device = flow.device[flow.stage[n]]
                            held[device, n_held[device]], n_held[device] = n, n_held[device] + 1
                        else:
                            chosen = n
                            break
                    for k in range(n_aside):
                        open_jobs[r, kind] = push(ready[r, kind], decided.rank, open_jobs[r, kind], aside[k])
                if chosen < 0:
                    continue
                n, busy[r], start[chosen] = chosen, True, now
                if flow.opens[n]:
                    under_way[flow.stage[n]] += 1
                _take(shop, n, level, taking)
                times[n] = now + shop.steps[n]
                n_events = push(events, times, n_events, n)
                for a in range(shop.feeds_at[n], shop.feeds_at[n + 1]):
                    after = shop.feeds_to[a]
                    begin[after] = max(begin[after], times[n] + shop.feeds_lag[a])
                    missing[after] -= 1
                    if missing[after] == 0:
                        times[n_jobs + after] = begin[after]
                        n_events = push(events, times, n_events, n_jobs + after)
                        q = shop.stream[after]
                        if decided.kind[after] == 0 and n_coming[q] < _MOST_COMING:
                            coming[q, n_coming[q]], n_coming[q] = after, n_coming[q] + 1
    return last if done == n_jobs else -1
