"""Completion bounds (cost-to-go) of every state of every layer: one backward pass with a few rows per state.

The value of an order is the maximum, over all times of its label, of the time plus its cost-to-go: each step or block
changes the times by sums and maxima only. So a row has the cost-to-go in ticks of each time of a label on one path to
the end. With one row per state it is the minimum over all paths. With more, a label has to fit one of them: similar
rows are merged to the minimum of every entry, which is weaker than either.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.compiled import compiled, inlined, substituted
from pipesched.problem.quantities import Ticks
from solver.diagram.layers import Labels
from solver.diagram.modelled_stages import distribution_count
from solver.diagram.moves import is_over_with, most_moves, moves_from, slack_of
from solver.diagram.reduction import append_reduced
from solver.diagram.steps import NONE, NOTHING, ModelledSteps, Numbers, Steps, longest_of

Short = NDArray[np.int32]

# More ticks than are ever added to an irrelevant time, so that sums fit into 32 bits.
ENDLESS = -NOTHING


class CompletionRows(NamedTuple):
    """Completion rows of a layer: the rows of the state with key `keys[n]` are `rows[first[n]:first[n + 1]]`.

    The keys are sorted. A row has the cost-to-go, in ticks, of each time of a label.
    """

    keys: Numbers
    first: Numbers
    rows: Short


class Among(NamedTuple):
    """Restriction of a backward pass to the states that a forward pass reached, with the least of every time there.

    `layers` has these states by steps done, with one label for each. At most `rows` rows are kept per state, and only
    those with which a label may end before `value` ticks.
    """

    layers: Sequence[Labels]
    rows: int
    value: Ticks


def completion(steps: Steps, most: int, stop: Event, among: Among | None = None) -> list[CompletionRows] | None:
    """Return the completion rows of all states, or of those in `among`; entry n is for the layer after n steps.

    The last entry is that of the final state, without rows if `among` is given. None if more than `most` integers would
    be stored, if times are too large, or after a stop.
    """
    size = steps.slots + 2 * len(steps.room)
    layers = _all_states(steps, most // size, stop) if among is None else [one.keys for one in among.layers]
    rows, value = (1, 0) if among is None else (among.rows, among.value)
    if layers is None or longest_of(steps) >= ENDLESS or sum(map(len, layers)) * rows * size > most:
        return None
    none = CompletionRows(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty((0, size), np.int32))
    end = np.full((1, size), NOTHING, np.int32)
    end[:, steps.slots + len(steps.room) :][:, steps.counts > 0] = 0
    key = np.array([(steps.raises * steps.microbatches).sum()], np.int64)
    found = [none, CompletionRows(key, np.array([0, 1], np.int64), end) if among is None else none]
    for done in reversed(range(len(layers))):
        least = np.empty((0, size), np.int32) if among is None else among.layers[done].labels
        first_and_rows = completion_rows_before(
            layers[done], steps, done, *found[-1], *found[-2], end, least, rows, value
        )
        found.append(CompletionRows(layers[done], *first_and_rows))
        if stop.is_set():
            return None
    return found[:0:-1]


def numbers_of(kept: ModelledSteps) -> int:
    """Return an estimate of the integers that `completion` stores, also for states that memory excludes."""
    steps, found = kept.steps, 1
    for first in np.unique(steps.first):
        distributions = distribution_count(int(steps.in_flight[first]), int((steps.first == first).sum()))
        found *= distributions * int((steps.microbatches * (steps.first == first)).sum())
    return found * (steps.slots + 2 * len(steps.room))


def _all_states(steps: Steps, most: int, stop: Event) -> list[Numbers] | None:
    """Return the sorted keys of all states of each layer but the last.

    None if there are more than `most`, or after a stop.
    """
    keys, after_block = [np.zeros(1, np.int64)], np.empty(0, np.int64)
    for done in range(int(steps.microbatches.sum()) - 1):
        after_step, after_next_block = keys_after(keys[-1], steps, done)
        keys.append(np.unique(np.concatenate([after_step, after_block])))
        after_block, most = after_next_block, most - len(keys[-1])
        if most < 0 or stop.is_set():
            return None
    return keys


@compiled
def keys_after(keys: Numbers, steps: Steps, done: int) -> tuple[Numbers, Numbers]:
    """Return the keys of the successors of some states by a step, and those by a block.

    A state may appear more than once. `keys` are the states' keys, and `done` is the number of steps done in each of
    them.
    """
    ran, pending = np.zeros_like(steps.ticks), np.zeros_like(steps.ticks)
    most_steps, most_blocks = most_moves(steps.blocks)
    moves = np.empty((most_steps + most_blocks, 2), np.int64)
    near, far = np.empty(len(keys) * most_steps, np.int64), np.empty(len(keys) * most_blocks, np.int64)
    found, found_far = 0, 0
    for key in keys:
        for move in range(moves_from(key, steps, done, ran, pending, moves)):
            if moves[move, 1] == NONE:
                near[found] = key + steps.raises[moves[move, 0]]
                found += 1
            else:
                far[found_far] = key + steps.raises[moves[move, 0]] + steps.raises[moves[move, 1]]
                found_far += 1
    return near[:found], far[:found_far]


@compiled
def completion_rows_before(  # type: ignore[no-untyped-def]
    keys, steps: Steps, done: int, near_keys, near_first, near, far_keys, far_first, far, end, least, most, value
) -> tuple[Numbers, Short]:
    """Return (first, rows): the completion rows of the states `keys`, computed from those of their successors.

    Rows have the cost-to-go in ticks of each time of a label; those of state n are from index `first[n]` to `first[n +
    1]`, none where no order ends. `done` steps precede the states. `near` are the rows one step later, `far` those two
    steps later, reached by a block, each with the sorted keys and first indices of its states; `end` is the only row of
    a final state. At most `most` rows stay per state, similar ones merged to the minimum of each entry. If `least` is
    not empty, it has the least times of each state, and only rows are kept with which none of these times reaches the
    threshold `value`.
    """
    width, moves = near.shape[1], np.empty((sum(most_moves(steps.blocks)), 2), np.int64)
    ran, pending, row = np.zeros_like(steps.ticks), np.zeros_like(steps.ticks), np.zeros(width, np.int64)
    rows = np.empty((len(moves) * most, width), np.int32)
    size = len(keys) * most + len(rows)
    first, out, words = np.zeros(len(keys) + 1, np.int64), np.empty((size, width), np.int32), np.empty(size, np.int64)
    for state in range(len(keys)):
        found = 0
        for move in range(moves_from(keys[state], steps, done, ran, pending, moves)):
            step, gradient = moves[move, 0], moves[move, 1]
            if is_over_with(step, gradient, ran, steps):
                successor_rows, (since, until) = end, (0, 1)
            elif gradient == NONE:
                successor_rows, (since, until) = near, _rows_of(keys[state] + steps.raises[step], near_keys, near_first)
            else:
                key = keys[state] + steps.raises[step] + steps.raises[gradient]
                successor_rows, (since, until) = far, _rows_of(key, far_keys, far_first)
            for number in range(since, until):
                before(
                    row, successor_rows[number], step, gradient, slack_of(step, pending[step], ran, steps), ran, steps
                )
                if not _in_time(row, least, state, value):
                    continue
                if most == 1 and found == 1:
                    for time in range(width):
                        rows[0, time] = min(np.int64(rows[0, time]), row[time])
                    continue
                for time in range(width):
                    rows[found, time] = row[time]
                found += 1
        total = first[state]
        if found > 0:
            total = min(total + most, append_reduced(rows[:found], most, out, total, words))
        first[state + 1] = total
    return first, out[: first[-1]].copy()


@inlined
def _in_time(row: Numbers, least: Short, state: int, value: int) -> bool:
    """True if each of the least times of a state plus its entry of `row` is below `value` ticks.

    `least` has a row of times for each state; if it has none, the result is True. Entries of `row` below `NOTHING` are
    set to that, at least up to the first entry that is too late.
    """
    for time in range(len(row)):
        row[time] = max(NOTHING, row[time])
        if len(least) > 0 and least[state, time] + row[time] >= value:
            return False
    return True


@inlined
def _rows_of(key: int, keys: Numbers, first: Numbers) -> tuple[int, int]:
    """Return the range (since, until) of completion rows of the state `key`.

    (0, 0) if it is not among the sorted `keys`. `first` has for each of `keys` the index of its first row, and one
    entry more.
    """
    state = place_of(key, keys, 0, len(keys))
    if state == len(keys) or keys[state] != key:
        return 0, 0
    return first[state], first[state + 1]


@inlined
def place_of(key: int, keys: Numbers, low: int, high: int) -> int:
    """Return the index from `low` to `high` - 1 of the first of the sorted `keys` not less than `key`, else `high`.

    A binary search inside compiled code.
    """
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@substituted  # as a call it takes twice as long
def before(row: Numbers, after: Numbers, step: int, gradient: int, slack: int, ran: Numbers, steps: Steps) -> None:
    """Fill `row` with the cost-to-go of each time before a step or block, computed from the cost-to-go `after` it.

    Both are in ticks, with an entry for each time of a label. `gradient` is the gradient in a block with the step
    `step`, or -1; `slack` are the ticks of weight passes that may be pending when the step starts, -1 without limit;
    `ran` has by step the micro-batches that have done it before.
    """
    slots, whole, device = steps.slots, steps.slots + len(steps.room), steps.device[step]
    ticks = steps.ticks[step] if gradient == NONE else steps.blocks[step, gradient]
    work = ticks + steps.later[step] if gradient == NONE else ticks
    started = max(ticks + after[slots + device], work + after[whole + device])
    for number in range(2):
        one = step if number == 0 else gradient
        if one == NONE:
            continue
        last = steps.last[one]
        # With this move the oldest micro-batch of the chain completes its last step.
        gone = 1 if last in (step, gradient) else 0
        follows = steps.tail[one] if one == last else after[steps.slot[one] + ran[one] - ran[last] - gone]
        started = max(started, ticks + follows)
    for other in range(slots, len(row)):
        started = max(started, np.int64(after[other]))  # nothing starts before this step does
        row[other] = after[other]
    first = 0
    while first < len(ran):
        last, slot = steps.last[first], steps.slot[first]
        gone = 1 if last in (step, gradient) else 0
        for other in range(steps.in_flight[first]):
            flies = gone <= other < ran[first] - ran[last]
            row[slot + other] = after[slot + other - gone] if flies else NOTHING
        first = last + 1
    if step != steps.first[step]:
        row[steps.slot[step] + ran[step] - ran[steps.last[step]]] = started + steps.lag[step]
    if gradient != NONE:
        row[steps.slot[gradient] + ran[gradient] - ran[steps.last[gradient]]] = started + steps.lag[gradient]
    row[slots + device] = started
    row[whole + device] += work
    if slack >= 0:
        row[whole + device] = max(row[whole + device], started - slack)
