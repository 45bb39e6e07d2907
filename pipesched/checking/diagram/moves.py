"""What an order can do next, and the times that it leads to: the rules of time and memory, compiled.

A label's times stand in a row: when the last step of each micro-batch under way ended; when each device can start the
next step; when it has run all that it could, weight passes too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipesched.checking.diagram.walk import Numbers, Steps
from pipesched.compiled import compiled, inner

Labels = np.ndarray[Any, np.dtype[Any]]

# No step, or one that cannot be next; any number of weight passes may be open; later than any time.
NO, _ANY, _LATE = -2, -1, 2**62


@compiled
def allowed(run: Numbers, steps: Steps) -> Numbers:
    """By state and step: how many weight passes may be open when it starts, -1 for any, -2 where it cannot be next."""
    found = np.full(run.shape, NO, np.int64)
    for one in range(len(run)):
        for n in range(run.shape[1]):
            ahead = min(steps.microbatches, run[one, -1] + steps.admitted) if n == 0 else run[one, n - 1]
            if run[one, n] < ahead:
                found[one, n] = _open_beside(run[one], n, steps)
    return found


@inner
def _open_beside(run: Numbers, n: int, steps: Steps) -> int:
    """A forward that leaves no room for those of micro-batches before it leads nowhere.

    Micro-batches behind the first that has forwards left on the device hold what they do until that one's gradient.
    """
    device = steps.device[n]
    room = steps.room[device]
    if steps.memory[n] <= 0 or room < 0:
        return _ANY
    held, first, needed = steps.memory[n], 0, 0
    for other in range(len(run) // 2):
        if steps.device[other] == device:
            first, needed = run[other], needed + steps.memory[other]
    needed += steps.memory[n] if first < run[n] else 0
    for other in range(len(run)):
        if steps.device[other] == device:
            held += steps.memory[other] * run[other]
            needed += steps.memory[other] * max(0, run[other] - first - 1)
    if held > room or (first < run[n] and needed > room):
        return NO
    return int((room - held) // steps.open_[device]) if steps.open_[device] > 0 else _ANY


@inner
def waiting(run: Numbers, comes: Numbers) -> int:
    """Fill in the next step of each micro-batch under way, the first one first; how many these are."""
    under_way, n = run[0] - run[-1], len(run) - 1
    for which in range(under_way):
        while run[n - 1] <= run[-1] + which:
            n -= 1
        comes[which] = n
    return int(under_way)


@inner
def ready_for(label: Labels, n: int, g: int, run: Numbers, steps: Steps) -> int:
    """When a step, or a forward and a gradient as one block, could start but for weight passes."""
    ready = np.int64(label[steps.admitted + steps.device[n]])
    if n > 0:
        ready = max(ready, label[run[n] - run[-1]] + steps.before[n])
    if g >= 0:
        ready = max(ready, label[run[g] - run[-1]] + steps.before[g])
    return int(ready)


@inner
def run_move(label: Labels, n: int, g: int, run: Numbers, ready: int, may: int, steps: Steps) -> None:
    """Change times by a step or block that is ready then. Moves are taken by their starts: no other starts before."""
    free, device = steps.admitted, steps.device[n]
    over, last = free + len(steps.room) + device, len(run) - 1
    start = np.int64(ready)
    if may >= 0:
        start = max(start, label[over] - may * steps.weight[device])
    for place in range(free, free + len(steps.room)):
        label[place] = max(label[place], start)
    end = start + (steps.ticks[n] if g < 0 else steps.together[n, g])
    label[run[n] - run[-1]] = label[free + device] = end
    if g >= 0:
        label[run[g] - run[-1]] = end
    label[over] = max(np.int64(label[over]), start) + end - start
    if g < 0:
        label[over] += steps.after[n]
    if last in (n, g):  # the first micro-batch is through
        for place in range(free - 1):
            label[place] = label[place + 1]
        label[free - 1] = 0


@inner
def raise_times(label: Labels, comes: Numbers, more: bool, steps: Steps) -> None:
    """Change times to the latest with which nothing that is left runs later.

    A micro-batch waits for its next device, and a device for what comes to it first: of those under way, or the next
    one. Until then it runs what is open.
    """
    free = steps.admitted
    for which, n in enumerate(comes):
        label[which] = max(np.int64(label[which]), label[free + steps.device[n]] - steps.before[n])
    for one in range(len(steps.room)):
        first = label[free] + steps.soonest[0, one] if more and steps.soonest[0, one] >= 0 else np.int64(_LATE)
        for which, n in enumerate(comes):
            if steps.soonest[n, one] >= 0:
                first = min(first, label[which] + steps.soonest[n, one])
        if first < _LATE:
            label[free + one] = max(np.int64(label[free + one]), first)
    for one in range(len(steps.room)):
        label[free + len(steps.room) + one] = all_over(label, one, steps)


@inner
def all_over(label: Labels, device: int, steps: Steps) -> int:
    """When a device that starts no step would have run all that is open; no sooner than it could start one."""
    free = steps.admitted + device
    return int(max(np.int64(label[free + len(steps.room)]), np.int64(label[free])))
