"""What the labels of a layer become by a step or a block, compiled; of those that may end below a value, where asked.

Most labels are left out then, so that each is made in one place and copied only if it stays. Times are copied one by
one: slices take Numba seconds to compile.
"""

from __future__ import annotations

import numpy as np

from pipesched.compiled import compiled, inlined
from solver.diagram.completion import before
from solver.diagram.guide import Guides, fits, look_ahead, may_end_below
from solver.diagram.layers import Layer
from solver.diagram.moves import fill_waiting, is_over_with, most_moves, moves_from, none_owned
from solver.diagram.steps import NEVER, NONE, Numbers, Steps
from solver.diagram.transitions import end_of, raise_times, take_move


@compiled
def expand(
    layer: Layer, since: int, until: int, steps: Steps, done: int, guides: Guides, value: int
) -> tuple[Numbers, Numbers, Numbers, Numbers, int, int]:
    """Keys and labels of some states after one step more, then of those after a block; `done` steps were before.

    With guides, of those that may end below the value. Last, the least value at the end, and how many labels were
    looked at.
    """
    width, labels, count = layer.labels.shape[1], layer.labels, len(steps.ticks)
    says, wide = len(guides.all), layer.first[until] - layer.first[since] + 1
    near_keys, near = np.empty(wide, np.int64), np.empty((wide, width), labels.dtype)
    far_keys, far = np.empty(wide, np.int64), np.empty((wide, width), labels.dtype)
    ran, pending, after = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    moves, waiting = np.empty((sum(most_moves(steps.blocks)), 2), np.int64), np.empty((count, 3), np.int64)
    row, follows, ends = np.empty(width, np.int64), np.empty(width, np.int64), np.zeros(says, np.int64)
    ways = np.empty((says * guides.most, width), np.int64)
    found, found_far, seen, ended = 0, 0, 0, np.int64(NEVER)
    for state in range(since, until):
        first, end = layer.first[state], layer.first[state + 1]
        for move in range(moves_from(layer.keys[state], steps, done, ran, pending, moves)):
            step, gradient = moves[move, 0], moves[move, 1]
            key, in_block = layer.keys[state] + steps.raises[step], gradient != NONE
            if in_block:
                key += steps.raises[gradient]
            _copy_with(step, gradient, ran, after)
            over = is_over_with(step, gradient, ran, steps)
            guided = says > 0 and not over
            if guided and not look_ahead(ways, ends, follows, after, guides, steps):
                continue
            if guided:
                before(row, follows, step, gradient, pending[step], ran, steps)
            before_all, left = none_owned(ran, steps), fill_waiting(after, steps, waiting)
            seen += end - first
            if in_block:
                far_keys, far = _with_room(far_keys, far, found_far, end - first)
            else:
                near_keys, near = _with_room(near_keys, near, found, end - first)
            for label in range(first, end):
                if guided and not may_end_below(labels[label], row, value):
                    continue
                new = far[found_far] if in_block else near[found]
                for time in range(width):
                    new[time] = labels[label, time]
                back = take_move(new, step, gradient, ran, pending[step], before_all, steps)
                if over:
                    ended = min(ended, np.int64(end_of(new, back, steps)))
                    continue
                raise_times(new, waiting, left, steps)
                if guided and not fits(new, ways, ends, value):
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


@inlined
def _copy_with(step: int, gradient: int, ran: Numbers, after: Numbers) -> None:
    for n in range(len(ran)):
        after[n] = ran[n] + (n in (step, gradient))


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
