"""What a step of an order changes of its times, and whether it still can end below a value, compiled."""

from __future__ import annotations

import numpy as np

from pipesched.checking.crossing_chains.ways import NO_STEP, Ways
from pipesched.checking.diagram.walk import Numbers
from pipesched.compiled import compiled

# Later than any time.
LATE = 2**62


@compiled
def left_on(device: int, run: Numbers, ways: Ways) -> int:
    """How many steps are left on a device."""
    left = 0
    for n in range(len(run)):
        if ways.device[n] == device:
            left += ways.number[n] - run[n]
    return left


@compiled
def _before_the_owner(run: Numbers, ways: Ways) -> bool:
    """Whether there is an owner, and it has run nothing."""
    for n in range(len(run)):
        if ways.device[n] == ways.owner and run[n] > 0:
            return False
    return bool(ways.owner >= 0)


@compiled
def run_step(times: Numbers, n: int, g: int, run: Numbers, may: int, ways: Ways) -> int:
    """Change times by a step, or by a forward and a gradient as one; when their micro-batches are done at the least."""
    free = ways.columns + ways.device[n]
    whole = free + len(ways.room)
    start = times[free]
    long_ago = _before_the_owner(run, ways) and ways.device[n] != ways.owner
    for step in (n, g):
        if step >= 0 and ways.earlier[step] == NO_STEP:
            start = max(start, ways.past + ways.before[step])
        elif step >= 0:
            start = max(start, times[ways.column[step] + run[step] - run[ways.final[step]]] + ways.before[step])
    if may >= 0:
        start = max(start, times[whole] - may * ways.weight[ways.device[n]])
    takes = ways.ticks[n] if g < 0 else ways.together[n, g]
    end = np.int64(ways.past)
    if not long_ago:
        start = max(start, np.int64(0))
        for place in range(ways.columns, len(times)):
            times[place] = max(times[place], start)
        end = times[free] = start + takes
        times[whole] += takes + (ways.after[n] if g < 0 else 0)
    _note_end(times, n, g, run, int(end), ways)
    return int(end + max(0, ways.behind[n], ways.behind[g] if g >= 0 else 0))


@compiled
def _note_end(times: Numbers, n: int, g: int, run: Numbers, end: int, ways: Ways) -> None:
    """Change the times of the micro-batches that run a step, or two as one; those that are back have none."""
    for step in (n, g):
        if step >= 0 and step != ways.final[step]:
            times[ways.column[step] + run[step] - run[ways.final[step]]] = end
    for step in (n, g):
        if step >= 0 and step == ways.final[step]:  # the first one of its chain is back
            last = ways.columns
            for other in ways.column:
                last = min(last, other) if other > ways.column[step] else last
            for place in range(ways.column[step], last - 1):
                times[place] = times[place + 1]
            times[last - 1] = 0


@compiled
def until_something_comes(times: Numbers, run: Numbers, ways: Ways) -> None:
    """Change times to the latest with which nothing that is left runs later.

    Micro-batches wait for their next device, and a device for what comes to it first, of those under way or the next.
    """
    devices, free = len(ways.room), ways.columns
    for one in range(devices):
        first = np.int64(LATE)
        for n in range(len(run)):
            begins = ways.earlier[n] == NO_STEP
            ahead = ways.number[n] if begins else run[ways.earlier[n]]
            if run[n] == ahead:
                continue
            idle = times[free + ways.device[n]] - ways.before[n]
            which = ways.column[n] + run[n] - run[ways.final[n]]
            if not begins:
                for place in range(which, which + ahead - run[n]):
                    times[place] = max(times[place], idle)
            if ways.soonest[n, one] >= 0:
                first = min(first, (max(np.int64(ways.past), idle) if begins else times[which]) + ways.soonest[n, one])
        if first < LATE:
            times[free + one] = max(times[free + one], first)
        times[free + devices + one] = max(times[free + devices + one], times[free + one])


@compiled
def ends_before(times: Numbers, run: Numbers, ways: Ways, below: int) -> bool:
    """Whether those under way, and the work that devices have left, leave time to end before the value."""
    devices, free = len(ways.room), ways.columns
    for n in range(len(run)):
        if ways.earlier[n] != NO_STEP and run[ways.earlier[n]] > run[n]:
            last = times[ways.column[n] + run[ways.earlier[n]] - 1 - run[ways.final[n]]]
            if last + ways.behind[ways.earlier[n]] >= below:
                return False
    for one in range(devices):
        if ways.owner >= 0 and one != ways.owner:  # it may end after what counts
            continue
        at_once, everything, down, back, behind = 0, 0, 0, 0, np.int64(LATE)
        for n in range(len(run)):
            left = ways.number[n] - run[n]
            if ways.device[n] == one and left > 0:
                at_once += left * ways.ticks[n]
                everything += left * (ways.ticks[n] + ways.after[n])
                down += left * (1 - ways.backward[n])
                back += left * ways.backward[n]
                if ways.backward[n]:
                    behind = min(behind, ways.behind[n])
        pairs = min(down, back)
        if times[free + devices + one] + everything - pairs * ways.won[one] >= below:
            return False
        if back and times[free + one] + at_once - pairs * ways.won_at_once[one] + behind >= below:
            return False
    return True
