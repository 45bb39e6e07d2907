"""Serial schedule generation, compiled: jobs by rank, each into the first gap of its stream that is long enough.

Unlike list scheduling it lets a stream wait for a job of a better rank, and fills the gap with others (Kolisch,
European Journal of Operational Research 90, 1996). Memory is taken in the order in which jobs are placed: one that does
not fit is postponed until enough is released.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipesched.compiled import compiled, inner

Array = Any  # numpy arrays of int64, one dimension unless said


class Shop(NamedTuple):
    """Data of the jobs for schedule generation.

    By job: steps, stream, memory taken and the index of that memory; the `group` of jobs at whose end memory is
    released (-1: none). By group: `size`, amount released (`gives`) and its memory (`given_to`); groups without jobs
    release nothing. `room` by memory (-1: no limit). `needs` is the number of predecessors; `feeds_*` the successors of
    each job, with lags, in compressed rows. `mate` is the job that starts together with a job (-1: none).
    """

    steps: Array
    stream: Array
    memory: Array
    takes: Array
    group: Array
    size: Array
    gives: Array
    given_to: Array
    room: Array
    needs: Array
    feeds_at: Array
    feeds_to: Array
    feeds_lag: Array
    mate: Array


class Gaps(NamedTuple):
    """Working arrays: the busy intervals of each stream (shape streams x intervals), and their number."""

    begin: Array
    end: Array
    count: Array


@inner
def push(heap, key, size, n):  # type: ignore[no-untyped-def]
    """Insert `n` into a heap ordered by `key`; returns the new size."""
    i = size
    heap[i] = n
    while i > 0 and key[heap[(i - 1) // 2]] > key[heap[i]]:
        heap[(i - 1) // 2], heap[i] = heap[i], heap[(i - 1) // 2]
        i = (i - 1) // 2
    return size + 1


@inner
def pop(heap, key, size):  # type: ignore[no-untyped-def]
    """Remove the entry of least key from a heap; returns it and the new size."""
    top = heap[0]
    size -= 1
    heap[0] = heap[size]
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[i]] <= key[heap[child]]:
            break
        heap[i], heap[child] = heap[child], heap[i]
        i = child
    return top, size


@inner
def first_fit(gaps, r, begin, steps):  # type: ignore[no-untyped-def]
    """The first time from `begin` on at which a stream is free for so long."""
    for k in range(gaps.count[r]):
        if gaps.begin[r, k] >= begin + steps:
            break
        begin = max(begin, gaps.end[r, k])
    return begin


@inner
def place(gaps, r, begin, steps):  # type: ignore[no-untyped-def]
    """Reserve the first interval of `steps` from `begin` on in which stream `r` is free; returns its start."""
    low, high = 0, gaps.count[r]
    while low < high:
        middle = (low + high) // 2
        if gaps.end[r, middle] > begin:
            high = middle
        else:
            low = middle + 1
    while low < gaps.count[r] and gaps.begin[r, low] < begin + steps:
        begin = max(begin, gaps.end[r, low])
        low += 1
    joins_next = low < gaps.count[r] and gaps.begin[r, low] == begin + steps
    if low > 0 and gaps.end[r, low - 1] == begin:
        gaps.end[r, low - 1] = begin + steps
        if joins_next:
            gaps.end[r, low - 1] = gaps.end[r, low]
            gaps.count[r] -= 1
            for k in range(low, gaps.count[r]):
                gaps.begin[r, k], gaps.end[r, k] = gaps.begin[r, k + 1], gaps.end[r, k + 1]
    elif joins_next:
        gaps.begin[r, low] = begin
    else:
        for k in range(gaps.count[r], low, -1):
            gaps.begin[r, k], gaps.end[r, k] = gaps.begin[r, k - 1], gaps.end[r, k - 1]
        gaps.begin[r, low], gaps.end[r, low] = begin, begin + steps
        gaps.count[r] += 1
    return begin


class Work(NamedTuple):
    """Room to work in: of each job what is missing, when it may begin, and whether it is placed or put off.

    Of each memory what gives back and is placed, by its end, how much that is, and the jobs that wait for more.
    """

    missing: Array
    begin: Array
    placed: Array
    waiting: Array
    left: Array
    ends: Array
    givers: Array
    given: Array
    giving: Array
    first_blocked: Array
    ready: Array


@inner
def _both_free(shop, gaps, n, mate, since):  # type: ignore[no-untyped-def]
    """The first time from then on at which two that start together find both of their streams free."""
    both = since
    while True:
        since = first_fit(gaps, shop.stream[n], both, shop.steps[n])
        both = first_fit(gaps, shop.stream[mate], since, shop.steps[mate])
        if both == since:
            return since


@inner
def _let_follow(shop, rank, work, open_jobs, n, end):  # type: ignore[no-untyped-def]
    """A job is placed: what it gives back, and which jobs that lets come up; how many these are then."""
    g = shop.group[n]
    if g >= 0:
        work.left[g] -= 1
        work.ends[g] = max(work.ends[g], end)
        if work.left[g] == 0:
            m = shop.given_to[g]
            work.given[m] = push(work.givers[m], work.ends, work.given[m], g)
            work.giving[m] += shop.gives[g]
            while work.first_blocked[m] >= 0:
                work.placed[work.first_blocked[m]] = False
                open_jobs = push(work.ready, rank, open_jobs, work.first_blocked[m])
                work.first_blocked[m] = work.waiting[work.first_blocked[m]]
    for a in range(shop.feeds_at[n], shop.feeds_at[n + 1]):
        after = shop.feeds_to[a]
        work.begin[after] = max(work.begin[after], end + shop.feeds_lag[a])
        work.missing[after] -= 1
        if work.missing[after] == 0:
            open_jobs = push(work.ready, rank, open_jobs, after)
    return open_jobs


@compiled
def generate(shop, rank, start, gaps):  # type: ignore[no-untyped-def]
    """Write the starts of all jobs into `start`; returns the latest end, or -1 if memory causes a deadlock."""
    n_jobs, groups, memories = shop.steps.shape[0], shop.size.shape[0], shop.room.shape[0]
    level, taken = np.zeros(memories, np.int64), np.zeros(memories, np.int64)
    work = Work(
        shop.needs.copy(),
        np.zeros(n_jobs, np.int64),
        np.zeros(n_jobs, np.bool_),
        np.full(n_jobs, -1, np.int64),
        shop.size.copy(),
        np.zeros(groups + 1, np.int64),
        np.zeros((memories, groups + 1), np.int64),
        np.zeros(memories, np.int64),
        np.zeros(memories, np.int64),
        np.full(memories, -1, np.int64),
        np.zeros(n_jobs + 1, np.int64),
    )
    gaps.count[:] = 0
    open_jobs = done = last = 0
    for n in range(n_jobs):
        if work.missing[n] == 0:
            open_jobs = push(work.ready, rank, open_jobs, n)
    while open_jobs > 0:
        n, open_jobs = pop(work.ready, rank, open_jobs)
        mate = shop.mate[n]
        if mate >= 0 and shop.takes[n] == 0:
            n, mate = mate, n  # of two that start together first the one that takes memory, if one does
        if work.placed[n]:
            continue
        work.placed[n] = True
        since, m = work.begin[n], shop.memory[n]
        if shop.takes[n] > 0 and shop.room[m] >= 0:
            if level[m] + shop.takes[n] - work.giving[m] > shop.room[m]:
                work.waiting[n], work.first_blocked[m] = work.first_blocked[m], n
                continue
            while level[m] + shop.takes[n] > shop.room[m]:
                g, work.given[m] = pop(work.givers[m], work.ends, work.given[m])
                level[m] -= shop.gives[g]
                work.giving[m] -= shop.gives[g]
                since = max(since, work.ends[g])
            level[m] += shop.takes[n]
            since = max(since, taken[m])
        if mate >= 0:
            work.placed[mate] = True
            since = _both_free(shop, gaps, n, mate, since)
        start[n] = place(gaps, shop.stream[n], since, shop.steps[n])
        if shop.takes[n] > 0:
            taken[m] = start[n]
        last, done = max(last, start[n] + shop.steps[n]), done + 1
        open_jobs = _let_follow(shop, rank, work, open_jobs, n, start[n] + shop.steps[n])
        if mate >= 0:
            start[mate], done = place(gaps, shop.stream[mate], since, shop.steps[mate]), done + 1
            open_jobs = _let_follow(shop, rank, work, open_jobs, mate, start[mate] + shop.steps[mate])
    return last if done == n_jobs else -1
