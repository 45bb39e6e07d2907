"""Serial schedule generation, compiled: jobs by rank, each in the first gap of its stream that is long enough.

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

    By job: `steps`, `stream`, the amount of memory that it `takes` and the index of that `memory`; the `group` of jobs
    at whose end memory is released (-1: none). By group: its `size` in jobs, the amount that it `gives` back and the
    index of that memory (`given_to`); groups without jobs release nothing. `room` is by memory (-1: no limit). `needs`
    is the number of predecessors of a job; its successors are `feeds_to[k]`, each after a lag of `feeds_lag[k]` steps,
    for k from `feeds_at[n]` to `feeds_at[n + 1]` (exclusive). `further` are the other streams that a job occupies from
    start to end (-1: none), without columns where no job occupies several.
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
    further: Array


class Gaps(NamedTuple):
    """Working arrays: `begin` and `end` of the busy intervals of each stream (shape streams x intervals), and `count`.

    `count` has by stream the number of its intervals, which are ascending; times are steps, ends exclusive.
    """

    begin: Array
    end: Array
    count: Array


@inner
def push(heap: Array, key: Array, size: int, n: int) -> int:
    """Insert `n` into the first `size` entries of a binary heap ordered by `key[n]`, the least first.

    Return the new size.
    """
    i = size
    heap[i] = n
    while i > 0 and key[heap[(i - 1) // 2]] > key[heap[i]]:
        heap[(i - 1) // 2], heap[i] = heap[i], heap[(i - 1) // 2]
        i = (i - 1) // 2
    return size + 1


@inner
def pop(heap: Array, key: Array, size: int) -> tuple[int, int]:
    """Remove the entry of least key from the first `size` entries of a binary heap; return it and the new size.

    `key` is by entry: entry n has `key[n]`.
    """
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
def place(gaps: Gaps, r: int, begin: int, steps: int) -> int:
    """Reserve the first free interval of length `steps` of stream `r` from step `begin` on; return its start.

    It is merged with busy intervals that it adjoins.
    """
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


@inner
def first_fit(gaps: Gaps, r: int, begin: int, steps: int) -> int:
    """Return the start of the first free interval of length `steps` of stream `r` from step `begin` on.

    The interval is not reserved.
    """
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
    return begin


@inner
def place_job(shop: Shop, gaps: Gaps, n: int, begin: int) -> int:
    """Reserve the first interval from step `begin` on in which all streams of job `n` are free; return its start.

    It is as long as the job, and reserved on its stream and on all others that it occupies (`shop.further`).
    """
    steps, width = shop.steps[n], shop.further.shape[1]
    if width > 0 and shop.further[n, 0] >= 0:
        since = begin - 1
        while since != begin:
            since = begin
            begin = first_fit(gaps, shop.stream[n], begin, steps)
            for k in range(width):
                if shop.further[n, k] >= 0:
                    begin = first_fit(gaps, shop.further[n, k], begin, steps)
        for k in range(width):
            if shop.further[n, k] >= 0:
                place(gaps, shop.further[n, k], begin, steps)
    return place(gaps, shop.stream[n], begin, steps)


@compiled
def generate(shop: Shop, rank: Array, start: Array, gaps: Gaps) -> int:
    """Write the starts of all jobs in steps into `start`; return the latest end, or -1 if memory causes a deadlock.

    `shop` has the data of the jobs. Of the jobs whose predecessors are placed, the one of lowest `rank` (by job) is
    next; it gets the first interval of its streams after its predecessors that is long enough. `gaps` is working space.
    """
    n_jobs, groups, memories = shop.steps.shape[0], shop.size.shape[0], shop.room.shape[0]
    missing, begin, left = shop.needs.copy(), np.zeros(n_jobs, np.int64), shop.size.copy()
    ready, open_jobs = np.zeros(n_jobs + 1, np.int64), 0
    level, taken = np.zeros(memories, np.int64), np.zeros(memories, np.int64)
    # By memory: the placed jobs that release it, by end, their number, and the jobs that wait for memory.
    givers, given = np.zeros((memories, groups + 1), np.int64), np.zeros(memories, np.int64)
    ends, giving = np.zeros(groups + 1, np.int64), np.zeros(memories, np.int64)
    waiting, first_blocked = np.full(n_jobs, -1, np.int64), np.full(memories, -1, np.int64)
    gaps.count[:] = 0
    for n in range(n_jobs):
        if missing[n] == 0:
            open_jobs = push(ready, rank, open_jobs, n)
    done = last = 0
    while open_jobs > 0:
        n, open_jobs = pop(ready, rank, open_jobs)
        since, m = begin[n], shop.memory[n]
        if shop.takes[n] > 0 and shop.room[m] >= 0:
            if level[m] + shop.takes[n] - giving[m] > shop.room[m]:
                waiting[n], first_blocked[m] = first_blocked[m], n
                continue
            while level[m] + shop.takes[n] > shop.room[m]:
                g, given[m] = pop(givers[m], ends, given[m])
                level[m] -= shop.gives[g]
                giving[m] -= shop.gives[g]
                since = max(since, ends[g])
            level[m] += shop.takes[n]
            since = max(since, taken[m])
        start[n] = place_job(shop, gaps, n, since)
        end = start[n] + shop.steps[n]
        last, done = max(last, end), done + 1
        if shop.takes[n] > 0:
            taken[m] = start[n]
        g = shop.group[n]
        if g >= 0:
            left[g] -= 1
            ends[g] = max(ends[g], end)
            if left[g] == 0:
                m = shop.given_to[g]
                given[m] = push(givers[m], ends, given[m], g)
                giving[m] += shop.gives[g]
                while first_blocked[m] >= 0:
                    open_jobs = push(ready, rank, open_jobs, first_blocked[m])
                    first_blocked[m] = waiting[first_blocked[m]]
        for a in range(shop.feeds_at[n], shop.feeds_at[n + 1]):
            after = shop.feeds_to[a]
            begin[after] = max(begin[after], end + shop.feeds_lag[a])
            missing[after] -= 1
            if missing[after] == 0:
                open_jobs = push(ready, rank, open_jobs, after)
    return last if done == n_jobs else -1
