"""One layer of orders of steps, compiled: each goes on by one step, and of those that come equally far the best stay.

As in `solver.bounds.crossing_steps.layers`, whose labels these are, with one more time for each device: when it would
have run all weight passes that wait, each of them as long as its shortest. That one counts them whole: a step that
starts in the middle of a weight pass has to wait for its end, or the pass is run later.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from solver.bounds.crossing_steps.layers import NEVER, _nowhere_later, _pending, _sorted, lift, positions
from solver.bounds.crossing_steps.steps import Numbers, Steps

# A step waits for no weight pass, or for one besides those that end before it anyway: `step * DELAYS + delay`.
DELAYS = 2


@njit(cache=True, nogil=True)
def longer(  # type: ignore[no-untyped-def]
    keys, first, labels, steps: Steps, weight: Numbers, done: int
) -> tuple[Numbers, Numbers, Numbers, Numbers, int, int, int]:
    """What `done` steps become by one more: keys, labels, the number of the label before, and the step.

    Last, the least value of those that have come to the end, with the label before and the step.
    """
    most, devices, count = steps.in_flight, len(steps.room), len(steps.ticks)
    size = first[-1] * (most + 1) * DELAYS
    out_keys, out = np.empty(size, np.int64), np.empty((size, labels.shape[1]), np.int64)
    before, taken = np.empty(size, np.int32), np.empty(size, np.int16)
    at, after = np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
    found, ended, last, last_step = 0, np.int64(NEVER), -1, -1
    for state in range(len(keys)):
        flying = positions(keys[state], steps, at)
        begun = (done - at[:flying].sum()) // count + flying
        for one in range(flying + 1):
            if one == flying and (begun == steps.microbatches or flying == most):
                continue
            if 0 < one < flying and at[one - 1] <= at[one]:
                continue  # in turn
            step = 0 if one == flying else at[one]
            pending = _pending(steps, at, flying, one, step)
            if pending == -2:
                continue
            through, now_begun = one == 0 and step == count - 1, begun + (one == flying)
            key = keys[state] - steps.place.sum() if through else keys[state] + steps.place[step + 1]
            left = positions(key, steps, after)
            for label in range(first[state], first[state + 1]):
                for delay in range(DELAYS):
                    new = out[found]
                    new[:] = labels[label]
                    if not advance_whole(new, one, step, pending, delay, steps, weight, one < flying):
                        break
                    if through:
                        new[: most - 1] = labels[label, 1:most]
                        new[most - 1] = 0
                    if left == 0 and now_begun == steps.microbatches:
                        ends = new[most + devices : most + 2 * devices]
                        value = ends.max() if steps.makespan else ends[0]
                        if value < ended:
                            ended, last, last_step = value, label, step * DELAYS + delay
                        continue
                    lift(new[: most + 2 * devices], after, left, now_begun < steps.microbatches, steps)
                    for device in range(devices):
                        weights_done = most + 2 * devices + device
                        new[weights_done] = max(new[weights_done], new[most + device])
                    out_keys[found], before[found], taken[found] = key, label, step * DELAYS + delay
                    found += 1
    return out_keys[:found], out[:found], before[:found], taken[:found], int(ended), last, last_step


@njit(cache=True, nogil=True)
def advance_whole(  # type: ignore[no-untyped-def]
    label, one, step, pending, delay, steps: Steps, weight: Numbers, follows
) -> bool:
    """Change a label by a step that waits for the end of `delay` weight passes; False where not so many wait."""
    devices, most = len(steps.room), steps.in_flight
    free, done = label[most : most + devices], label[most + devices : most + 2 * devices]
    weights_done = label[most + 2 * devices :]
    device = steps.device[step]
    each, start, waiting = weight[device], free[device], np.int64(0)
    if follows:
        start = max(start, label[one] + steps.lag[step])
    if pending >= 0:
        start = max(start, done[device] - pending * steps.longest[device], weights_done[device] - pending * each)
    if each > 0:
        waiting = max(0, -((start - weights_done[device]) // each)) - delay
        if delay > 0:
            start = weights_done[device] - waiting * each
    if waiting < 0 or (each == 0 and delay > 0):
        return False
    for other in range(devices):
        free[other] = max(free[other], start)
        done[other] = max(done[other], start)
        weights_done[other] = max(weights_done[other], start)
    end = start + steps.ticks[step]
    free[device] = label[one] = end
    done[device] += steps.ticks[step] + steps.later[step]
    weights_done[device] = end + each * (waiting + (2 * step >= len(steps.ticks)))
    return True


@njit(cache=True, nogil=True)
def best_of(keys: Numbers, labels: Numbers, width: int) -> tuple[Numbers, Numbers, Numbers]:
    """Of labels sorted by key: the keys, where those of each begin, and the numbers of the labels that stay.

    Those are at most `width` of a key, the first by their sums, that no other is below.
    """
    states, first = np.empty(len(keys), np.int64), np.zeros(len(keys) + 1, np.int64)
    kept = np.empty(len(keys), np.int64)
    found = total = since = 0
    while since < len(keys):
        until = since
        while until < len(keys) and keys[until] == keys[since]:
            until += 1
        begin = total
        for number in _sorted(labels[since:until]):
            below = False
            for other in range(begin, total):
                below = below or _nowhere_later(labels[kept[other]], labels[since + number])
            if not below:
                kept[total] = since + number
                total += 1
                if total - begin == width:
                    break
        states[found] = keys[since]
        found, since = found + 1, until
        first[found] = total
    return states[:found].copy(), first[: found + 1].copy(), kept[:total].copy()
