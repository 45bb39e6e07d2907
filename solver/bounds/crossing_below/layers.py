"""What the labels of a layer become by a step or a block, without those that cannot end below a value, compiled.

Most labels are left out, so that each is made in one place and copied only if it stays.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from solver.backends.compiled import inlined, inner
from solver.bounds.crossing_below.moves import NONE, most_moves, moves_from, raised_by
from solver.bounds.crossing_below.remaining import Rests, before
from solver.bounds.crossing_steps.layers import Layer
from solver.bounds.crossing_steps.moves import NEVER, positions_of, take_step
from solver.bounds.crossing_steps.steps import Numbers, Steps


@njit(cache=True, nogil=True)
def successors_below(
    layer: Layer, since: int, until: int, steps: Steps, blocks: Numbers, done: int, near: Rests, far: Rests, value: int
) -> tuple[Numbers, Numbers, Numbers, Numbers, int, int]:
    """Keys and labels of some states after one step more, then of those after a block, if they may end below the value.

    `near` and `far` say what remains there. Last, the least value at the end, and how many labels were looked at.
    """
    most, width, labels = steps.in_flight, layer.labels.shape[1], layer.labels
    (most_steps, most_blocks), wide = most_moves(blocks), layer.first[until] - layer.first[since] + 1
    keys, out = np.empty(wide, np.int64), np.empty((wide, width), labels.dtype)
    far_keys, far_out = np.empty(wide, np.int64), np.empty((wide, width), labels.dtype)
    ran, pending, after = np.zeros_like(steps.ticks), np.zeros_like(steps.ticks), np.zeros(most + 1, np.int64)
    moves, more, row = np.empty((most_steps + most_blocks, 2), np.int64), raised_by(steps), np.empty(width, np.int64)
    ways = np.empty((len(steps.room), most), np.int64)
    found, found_far, seen, ended = 0, 0, 0, np.int64(NEVER)
    for state in range(since, until):
        first, end = layer.first[state], layer.first[state + 1]
        for move in range(moves_from(layer.keys[state], steps, blocks, done, ran, pending, moves)):
            step, gradient = moves[move, 0], moves[move, 1]
            in_block = gradient != NONE
            key = layer.keys[state] + more[step] + (more[gradient] if in_block else 0)
            begun = (done - ran.sum()) // len(ran) + ran[0] + (step == 0)
            rest = far if in_block else near
            seen += end - first
            follows = rest.rests[np.searchsorted(rest.keys, key)]
            before(row, follows, step, gradient, pending[step], ran, steps, blocks)
            left = positions_of(key, steps, after)
            _ways(ways, after, left, steps)
            if in_block:
                far_keys, far_out = _with_room(far_keys, far_out, found_far, end - first)
            else:
                keys, out = _with_room(keys, out, found, end - first)
            for label in range(first, end):
                if not _may_end_below(labels[label], row, value):
                    continue
                new = far_out[found_far] if in_block else out[found]
                new[:] = labels[label]
                _take_move(new, step, gradient, ran, pending[step], steps, blocks)
                if not in_block and done + 1 == len(ran) * steps.microbatches:
                    ends = new[most + len(steps.room) :]
                    ended = min(ended, ends.max() if steps.makespan else ends[0])
                    continue
                if max(step, gradient) == len(ran) - 1:
                    _leave(new, most)
                _raise_times(new, after, left, begun < steps.microbatches, steps, ways)
                if not _may_end_below(new, follows, value):
                    continue
                if in_block:
                    far_keys[found_far] = key
                    found_far += 1
                else:
                    keys[found] = key
                    found += 1
    return (
        keys[:found].copy(),
        out[:found].copy(),
        far_keys[:found_far].copy(),
        far_out[:found_far].copy(),
        int(ended),
        seen,
    )


@njit(cache=True, nogil=True)
def _with_room(keys: Numbers, labels: Numbers, found: int, many: int) -> tuple[Numbers, Numbers]:
    """The same with places for so many more; twice as many, where there are too few."""
    if found + many <= len(keys):
        return keys, labels
    wide = 2 * len(keys) + many
    more_keys, more = np.empty(wide, np.int64), np.empty((wide, labels.shape[1]), labels.dtype)
    more_keys[:found], more[:found] = keys[:found], labels[:found]
    return more_keys, more


@inner  # type: ignore[untyped-decorator]
def _take_move(
    label: Numbers, step: int, gradient: int, ran: Numbers, pending: int, steps: Steps, blocks: Numbers
) -> None:
    if gradient == NONE:
        take_step(label, ran[step], step, pending, steps, step > 0)
    else:
        take_block(label, step, gradient, ran, pending, steps, blocks)


@inner  # type: ignore[untyped-decorator]
def take_block(
    label: Numbers, step: int, gradient: int, ran: Numbers, pending: int, steps: Steps, blocks: Numbers
) -> None:
    """Change a label by a forward and a gradient of a device in one block."""
    most, device, one, other = steps.in_flight, steps.device[step], ran[step], ran[gradient]
    free, whole = most + device, most + len(steps.room) + device
    start = max(label[free], label[other] + steps.lag[gradient])
    if step > 0:
        start = max(start, label[one] + steps.lag[step])
    if pending >= 0:
        start = max(start, label[whole] - pending * steps.longest[device])
    for time in range(most, len(label)):
        label[time] = max(label[time], start)
    ticks = blocks[step, gradient]
    label[free] = label[one] = label[other] = start + ticks
    label[whole] += ticks


@inner  # type: ignore[untyped-decorator]
def _leave(label: Numbers, most: int) -> None:
    """Take the oldest micro-batch, which is through, out of a label."""
    for time in range(most - 1):
        label[time] = label[time + 1]
    label[most - 1] = 0


@inlined  # type: ignore[untyped-decorator]
def _may_end_below(label: Numbers, follows: Numbers, value: int) -> bool:
    for time in range(len(label)):  # noqa: SIM110 - Numba compiles no generator
        if label[time] + follows[time] >= value:
            return False
    return True


@inner  # type: ignore[untyped-decorator]
def _ways(ways: Numbers, at: Numbers, flying: int, steps: Steps) -> None:
    """Fill in for each device how long each micro-batch in flight takes to it at least; much where it does not come."""
    for device in range(len(ways)):
        for one in range(flying):
            reach = steps.reach[at[one], device]
            ways[device, one] = reach if reach >= 0 else NEVER // 2


@inlined  # type: ignore[untyped-decorator]
def _raise_times(label: Numbers, at: Numbers, flying: int, more: bool, steps: Steps, ways: Numbers) -> None:
    """As `crossing_steps.moves.raise_times`, with the ways to each device at hand."""
    devices, most = len(ways), len(label) - 2 * len(ways)
    for one in range(flying):
        label[one] = max(label[one], label[most + steps.device[at[one]]] - steps.lag[at[one]])
    for device in range(devices):
        soonest = label[most] + steps.reach[0, device] if more else np.int64(NEVER // 2)
        for one in range(flying):
            soonest = min(soonest, label[one] + ways[device, one])
        if soonest < NEVER // 2:
            label[most + device] = max(label[most + device], soonest)
        label[most + devices + device] = max(label[most + devices + device], label[most + device])
