"""Expansion of a layer's labels (rows of times of partial orders) by a step or a block, compiled.

With a threshold only labels that may end before it stay. Most labels are pruned then, so each is computed in one place
and copied only if it stays. Times are copied one by one, since slices take Numba seconds to compile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipesched.compiled import compiled, inlined
from solver.diagram.completion import before
from solver.diagram.layers import Layer
from solver.diagram.moves import fill_waiting, is_over_with, most_moves, moves_from, none_owned, slack_of
from solver.diagram.projected_completion import ProjectedCompletions, fits, look_ahead, may_end_before
from solver.diagram.steps import NEVER, NONE, Numbers, Steps
from solver.diagram.transitions import end_of, raise_times, take_move

Flags = NDArray[np.bool_]


@compiled
def expand(
    layer: Layer, since: int, until: int, steps: Steps, done: int, completions: ProjectedCompletions, value: int
) -> tuple[Numbers, Numbers, Flags, int, int]:
    """Return the labels of all children of the states `since` to `until` - 1: keys, labels, True where made by a block.

    A child is a label after one more step or block; `done` steps precede the layer. With completion bounds
    (`completions`), only labels that may end before `value` ticks stay. Children of complete orders are left out; in
    their place the least end in ticks of these (`NEVER` if none is complete) is returned, and then the number of labels
    looked at. Labels are neither sorted nor pruned by dominance.
    """
    width, labels, count = layer.labels.shape[1], layer.labels, len(steps.ticks)
    diagrams, wide = len(completions.all), layer.first[until] - layer.first[since] + 1
    keys, out, blocks = np.empty(wide, np.int64), np.empty((wide, width), labels.dtype), np.empty(wide, np.bool_)
    ran, pending, after = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    moves, waiting = np.empty((sum(most_moves(steps.blocks)), 2), np.int64), np.empty((count, 3), np.int64)
    row, follows, ends = np.empty(width, np.int64), np.empty(width, np.int64), np.zeros(diagrams, np.int64)
    completion_rows = np.empty((diagrams * completions.most, width), np.int64)
    found, seen, ended = 0, 0, np.int64(NEVER)
    for state in range(since, until):
        first, end = layer.first[state], layer.first[state + 1]
        for move in range(moves_from(layer.keys[state], steps, done, ran, pending, moves)):
            step, gradient = moves[move, 0], moves[move, 1]
            slack = slack_of(step, pending[step], ran, steps)
            _copy_with(step, gradient, ran, after)
            over = is_over_with(step, gradient, ran, steps)
            bounded = diagrams > 0 and not over
            if bounded and not look_ahead(completion_rows, ends, follows, after, completions, steps):
                continue
            if bounded:
                before(row, follows, step, gradient, slack, ran, steps)
            before_all, left = none_owned(ran, steps), fill_waiting(after, steps, waiting)
            key = layer.keys[state] + steps.raises[step] + (0 if gradient == NONE else steps.raises[gradient])
            seen += end - first
            keys, out, blocks = _with_room(keys, out, blocks, found, end - first)
            for label in range(first, end):
                if bounded and not may_end_before(labels[label], row, value):
                    continue
                new = out[found]
                for time in range(width):
                    new[time] = labels[label, time]
                back = take_move(new, step, gradient, ran, slack, before_all, steps)
                if over:
                    ended = min(ended, np.int64(end_of(new, back, steps)))
                    continue
                raise_times(new, waiting, left, steps)
                if not bounded or fits(new, completion_rows, ends, value):
                    keys[found], blocks[found] = key, gradient != NONE
                    found += 1
    return keys[:found].copy(), out[:found].copy(), blocks[:found].copy(), int(ended), seen


@inlined
def _copy_with(step: int, gradient: int, ran: Numbers, after: Numbers) -> None:
    for n in range(len(ran)):
        after[n] = ran[n] + (n in (step, gradient))


@compiled
def _with_room(keys: Numbers, labels: Numbers, blocks: Flags, found: int, many: int) -> tuple[Numbers, Numbers, Flags]:
    """Return the arrays with room for `many` more entries: as they are, or copied to larger ones.

    `found` entries are in use. `keys` and `blocks` have an entry for each row of `labels`.
    """
    if found + many <= len(keys):
        return keys, labels, blocks
    wide = 2 * len(keys) + many
    more_keys, more_blocks = np.empty(wide, np.int64), np.empty(wide, np.bool_)
    more = np.empty((wide, labels.shape[1]), labels.dtype)
    for label in range(found):
        more_keys[label], more_blocks[label] = keys[label], blocks[label]
        for time in range(labels.shape[1]):
            more[label, time] = labels[label, time]
    return more_keys, more, more_blocks
