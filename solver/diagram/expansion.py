"""What the labels of a layer become by a step or a block, compiled; of those that may end below a value, where asked.

Most labels are left out then, so that each is made in one place and copied only if it stays. Times are copied one by
one: slices take Numba seconds to compile.
"""

from __future__ import annotations

import numpy as np

from pipesched.compiled import compiled, inlined
from solver.diagram.completion import before
from solver.diagram.guide import Guide, look_ahead
from solver.diagram.layers import Layer
from solver.diagram.moves import most_moves, moves_from, positions_of, raised_by
from solver.diagram.steps import NONE, Numbers, Steps
from solver.diagram.transitions import NEVER, end_of, raise_times, take_move, ways_to_devices


@compiled
def expand(
    layer: Layer, since: int, until: int, steps: Steps, done: int, guide: Guide, value: int
) -> tuple[Numbers, Numbers, Numbers, Numbers, int, int]:
    """Keys and labels of some states after one step more, then of those after a block; `done` steps were before.

    Where the guide says something, of those that may end below the value. Last, the least value at the end, and how
    many labels were looked at.
    """
    most, width, labels, says = steps.in_flight, layer.labels.shape[1], layer.labels, len(guide.since) > 1
    (most_steps, most_blocks), wide = most_moves(steps.blocks), layer.first[until] - layer.first[since] + 1
    near_keys, near = np.empty(wide, np.int64), np.empty((wide, width), labels.dtype)
    far_keys, far = np.empty(wide, np.int64), np.empty((wide, width), labels.dtype)
    ran, pending, after = np.zeros_like(steps.ticks), np.zeros_like(steps.ticks), np.zeros(most + 1, np.int64)
    moves, more = np.empty((most_steps + most_blocks, 2), np.int64), raised_by(steps)
    row, follows = np.empty(width, np.int64), np.empty(width, np.int64)
    ways = np.empty((len(steps.room), most), np.int64)
    found, found_far, seen, ended = 0, 0, 0, np.int64(NEVER)
    for state in range(since, until):
        first, end = layer.first[state], layer.first[state + 1]
        for move in range(moves_from(layer.keys[state], steps, done, ran, pending, moves)):
            step, gradient = moves[move, 0], moves[move, 1]
            in_block = gradient != NONE
            key = layer.keys[state] + more[step] + (more[gradient] if in_block else 0)
            begun = (done - ran.sum()) // len(ran) + ran[0] + (step == 0)
            left = positions_of(key, steps, after)
            if not look_ahead(follows, after, left, begun, guide, most):
                continue
            before(row, follows, step, gradient, pending[step], ran, steps)
            seen += end - first
            ways_to_devices(ways, after, left, steps)
            if in_block:
                far_keys, far = _with_room(far_keys, far, found_far, end - first)
            else:
                near_keys, near = _with_room(near_keys, near, found, end - first)
            for label in range(first, end):
                if says and not _may_end_below(labels[label], row, value):
                    continue
                new = far[found_far] if in_block else near[found]
                for time in range(width):
                    new[time] = labels[label, time]
                take_move(new, step, gradient, ran, pending[step], steps)
                if not in_block and done + 1 == len(ran) * steps.microbatches:
                    ended = min(ended, np.int64(end_of(new, steps)))
                    continue
                raise_times(new, after, left, begun < steps.microbatches, steps, ways)
                if says and not _may_end_below(new, follows, value):
                    continue
                if in_block:
                    far_keys[found_far] = key
                    found_far += 1
                else:
                    near_keys[found] = key
                    found += 1
    return (
        near_keys[:found].copy(),
        near[:found].copy(),
        far_keys[:found_far].copy(),
        far[:found_far].copy(),
        int(ended),
        seen,
    )


@compiled
def _with_room(keys: Numbers, labels: Numbers, found: int, many: int) -> tuple[Numbers, Numbers]:
    """The same with places for so many more; twice as many, where there are too few."""
    if found + many <= len(keys):
        return keys, labels
    wide = 2 * len(keys) + many
    more_keys, more = np.empty(wide, np.int64), np.empty((wide, labels.shape[1]), labels.dtype)
    for label in range(found):
        more_keys[label] = keys[label]
        for time in range(labels.shape[1]):
            more[label, time] = labels[label, time]
    return more_keys, more


@inlined
def _may_end_below(label: Numbers, follows: Numbers, value: int) -> bool:
    for time in range(len(label)):  # noqa: SIM110 - Numba compiles no generator
        if label[time] + follows[time] >= value:
            return False
    return True
