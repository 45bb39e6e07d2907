"""One layer of partial orders of steps, compiled: expansion by one step, and selection of the best labels per state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipesched.compiled import compiled, inlined
from solver.diagram.completion import Short, place_of
from solver.diagram.moves import fill_waiting, moves_from
from solver.diagram.reduction import nowhere_later
from solver.diagram.steps import NEVER, Numbers, Steps
from solver.diagram.transitions import end_of, raise_times
from solver.parameters import tunable, tuned
from solver.step_orders.weights import Weights, advance_whole


@dataclass(frozen=True)
@tunable
class StepOrderParams:
    """Weight in the rank of partial orders with equally many steps."""

    completion_weight: int = tuned(3, "of its completion bound, beside the sum of all its times", 0, 100)


_COMPLETION_WEIGHT = StepOrderParams().completion_weight
# Code of a choice: `(step * MODES + full) * DELAYS + delay`. Before a step runs no weight pass, or one, in addition to
# those that end in time; a backward may be a full one.
DELAYS, MODES = 2, 2


@compiled
def longer(
    keys: Numbers,
    first: Numbers,
    labels: Numbers,
    steps: Steps,
    weights: Weights,
    done: int,
    keys_of: Numbers,
    first_of: Numbers,
    completion_rows: Short,
    threshold: int,
) -> tuple[Numbers, Numbers, Numbers, Numbers, int, int, int]:
    """Expand all labels of a layer by each possible step; `done` is the number of steps taken so far.

    The labels of state n, with key `keys[n]`, are `labels[first[n]:first[n + 1]]`. Returns, for each new label, the key
    of its state, its entries, the index of its parent label and the code of its step (step, full backward, delay of
    weight passes); then the least end in ticks of complete orders (`NEVER` if none), with the index of the parent and
    the code of the step of that order (both -1 if none). Completion rows, the cost-to-go of each time, are those of the
    next layer: the state with key `keys_of[n]` has the rows `first_of[n]` to `first_of[n + 1]` - 1 of
    `completion_rows`. Labels that cannot end before `threshold` ticks on any of them are pruned.
    """
    count, half, times = len(steps.ticks), len(steps.ticks) // 2, steps.slots + 2 * len(steps.room)
    size = first[-1] * (steps.slots + 1) * DELAYS * (MODES if weights.full.any() else 1)
    out_keys, out = np.empty(size, np.int64), np.empty((size, labels.shape[1]), np.int64)
    before, taken = np.empty(size, np.int32), np.empty(size, np.int16)
    ran, may, waiting = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros((count, 3), np.int64)
    moves, size_of = np.empty((count, 2), np.int64), labels.shape[1]
    found, ended, last, last_step = 0, np.int64(NEVER), -1, -1
    for state in range(len(keys)):
        # The oldest micro-batch first.
        for move in range(moves_from(keys[state], steps, done, ran, may, moves) - 1, -1, -1):
            step = moves[move, 0]
            key, over = keys[state] + steps.raises[step], done + 1 == count * steps.microbatches[0]
            ran[step] += 1
            left = fill_waiting(ran, steps, waiting)
            ran[step] -= 1
            place = place_of(key, keys_of, 0, len(keys_of))
            modes = MODES if step >= half and weights.full[step - half] > 0 else 1
            for label in range(first[state], first[state + 1]):
                for choice in range(modes * DELAYS):
                    full, delay = choice // DELAYS, choice % DELAYS
                    new = out[found]
                    for entry in range(size_of):
                        new[entry] = labels[label, entry]
                    if not advance_whole(new, ran, step, may[step], delay, full, steps, weights):
                        continue
                    code = step * MODES * DELAYS + choice
                    if over:
                        value = np.int64(end_of(new, 0, steps))
                        if value < ended:
                            ended, last, last_step = value, label, code
                        continue
                    raise_times(new, waiting, left, steps)
                    if _least(new, times, completion_rows, first_of[place], first_of[place + 1]) < threshold:
                        out_keys[found], before[found], taken[found] = key, label, code
                        found += 1
    return out_keys[:found], out[:found], before[:found], taken[:found], int(ended), last, last_step


@compiled
def best_of(
    keys: Numbers,
    labels: Numbers,
    width: int,
    steps: Steps,
    keys_of: Numbers,
    first_of: Numbers,
    completion_rows: Short,
) -> tuple[Numbers, Numbers, Numbers]:
    """Select labels sorted by key: return the keys, each key's first place among the kept, and the indices of the kept.

    Per key at most `width` non-dominated labels are kept, those of lowest rank. The rank of a label is the sum of the
    ends of micro-batches in flight and of the devices' work, plus a multiple of its completion bound
    (`StepOrderParams`), all in ticks. `keys` and `labels` have an entry and a row for each label. The state with key
    `keys_of[n]` has the completion rows `first_of[n]` to `first_of[n + 1]` - 1 of `completion_rows`.
    """
    states, first = np.empty(len(keys), np.int64), np.zeros(len(keys) + 1, np.int64)
    kept, ranks = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    times = steps.slots + 2 * len(steps.room)
    found = total = since = 0
    while since < len(keys):
        until = since
        place = place_of(keys[since], keys_of, 0, len(keys_of))
        while until < len(keys) and keys[until] == keys[since]:
            ranks[until] = _rank(
                labels[until], steps.slots, times, completion_rows, first_of[place], first_of[place + 1]
            )
            until += 1
        begin = total
        for number in np.argsort(ranks[since:until], kind="mergesort"):
            dominated = False
            for other in range(begin, total):
                dominated = dominated or nowhere_later(labels[kept[other], :times], labels[since + number, :times])
            if not dominated:
                kept[total] = since + number
                total += 1
                if total - begin == width:
                    break
        states[found] = keys[since]
        found, since = found + 1, until
        first[found] = total
    return states[:found].copy(), first[: found + 1].copy(), kept[:total].copy()


@inlined
def _least(label: Numbers, times: int, completion_rows: Short, since: int, until: int) -> np.int64:
    """Return a label's completion bound in ticks: the least over rows of the largest time plus its cost-to-go.

    The rows are `since` to `until` - 1 of `completion_rows`, and the first `times` entries of the label are its times.
    `NEVER` without rows.
    """
    best = np.int64(NEVER)
    for row in range(since, until):
        least = np.int64(0)
        for entry in range(times):
            least = max(least, label[entry] + completion_rows[row, entry])
        best = min(best, least)
    return best


@inlined
def _rank(label: Numbers, flying: int, times: int, completion_rows: Short, since: int, until: int) -> np.int64:
    """Return the rank of a label in ticks: its completion bound, weighted, plus its ends and devices' work.

    The first `flying` of its `times` are the ends of the last steps of micro-batches in flight. Completion rows are
    read from `since` to `until` - 1.
    """
    rank = _COMPLETION_WEIGHT * _least(label, times, completion_rows, since, until)
    for entry in range(times):
        if entry < flying or entry >= flying + (times - flying) // 2:
            rank += label[entry]
    return rank
