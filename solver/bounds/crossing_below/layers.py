"""What the labels of a layer become by a step or a block, without those that cannot end below a value, compiled.

Most labels are left out, so that each is made in one place and copied only if it stays.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from solver.backends.compiled import inner
from solver.bounds.crossing_below.moves import NONE, most_moves, moves_from, raised_by
from solver.bounds.crossing_below.remaining import Rests, Short
from solver.bounds.crossing_steps.layers import Layer
from solver.bounds.crossing_steps.moves import NEVER, positions_of, raise_times, take_step
from solver.bounds.crossing_steps.steps import Numbers, Steps


@njit(cache=True, nogil=True)
def successors_below(
    layer: Layer, since: int, until: int, steps: Steps, blocks: Numbers, done: int, near: Rests, far: Rests, value: int
) -> tuple[Numbers, Numbers, Numbers, Numbers, int, int]:
    """Keys and labels of some states after one step more, then of those after a block, if they may end below the value.

    `near` and `far` say what remains there. Last, the least value at the end, and how many labels were looked at.
    """
    most, width, labels = steps.in_flight, layer.labels.shape[1], layer.labels
    size, (most_steps, most_blocks) = layer.first[until] - layer.first[since], most_moves(blocks)
    keys, out = np.empty(size * most_steps, np.int64), np.empty((size * most_steps, width), np.int64)
    far_keys, far_out = np.empty(size * most_blocks, np.int64), np.empty((size * most_blocks, width), np.int64)
    ran, pending, after = np.zeros_like(steps.ticks), np.zeros_like(steps.ticks), np.zeros(most + 1, np.int64)
    moves, more, new = np.empty((most_steps + most_blocks, 2), np.int64), raised_by(steps), np.empty(width, np.int64)
    found, found_far, seen, ended = 0, 0, 0, np.int64(NEVER)
    for state in range(since, until):
        for move in range(moves_from(layer.keys[state], steps, blocks, done, ran, pending, moves)):
            step, gradient = moves[move, 0], moves[move, 1]
            in_block = gradient != NONE
            key = layer.keys[state] + more[step] + (more[gradient] if in_block else 0)
            begun = (done - ran.sum()) // len(ran) + ran[0] + (step == 0)
            last = not in_block and done + 1 == len(ran) * steps.microbatches
            left = positions_of(key, steps, after)
            rest = far if in_block else near
            row = np.searchsorted(rest.keys, key)
            for label in range(layer.first[state], layer.first[state + 1]):
                new[:] = labels[label]
                if in_block:
                    take_block(new, step, gradient, ran, pending[step], steps, blocks)
                else:
                    take_step(new, ran[step], step, pending[step], steps, step > 0)
                if last:
                    ends = new[most + len(steps.room) :]
                    ended = min(ended, ends.max() if steps.makespan else ends[0])
                    continue
                if max(step, gradient) == len(ran) - 1:
                    _leave(new, most)
                raise_times(new, after, left, begun < steps.microbatches, steps)
                seen += 1
                if not _may_end_below(new, rest.rests, row, value):
                    continue
                if in_block:
                    far_keys[found_far], far_out[found_far] = key, new
                    found_far += 1
                else:
                    keys[found], out[found] = key, new
                    found += 1
    return (
        keys[:found].copy(),
        out[:found].copy(),
        far_keys[:found_far].copy(),
        far_out[:found_far].copy(),
        int(ended),
        seen,
    )


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


@inner  # type: ignore[untyped-decorator]
def _may_end_below(label: Numbers, rests: Short, row: int, value: int) -> bool:
    for time in range(len(label)):  # noqa: SIM110 - Numba compiles no generator
        if label[time] + rests[row, time] >= value:
            return False
    return True
