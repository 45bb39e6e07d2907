"""Search over the orders of all devices together for a schedule within a limit: compiled.

Each step puts a pass next on one device, and raises the starts of all passes to the least that this allows. Arrays are
copied number by number: an array assigned to a row or slice takes Numba seconds to compile.
"""

from __future__ import annotations

import numpy as np

from pipesched.compiled import compiled, inner
from tests.support.exhaustive.choices import ALONE, OF_PAIR, OF_ROLE, choose, node_of
from tests.support.exhaustive.limits import (
    BW,
    B,
    F,
    Numbers,
    Order,
    Passes,
    Question,
    State,
    W,
    least_ticks,
    settle,
    tails_of,
)

# A row for each depth: starts and ticks of passes; of devices the last pass, the work left and the memory in use. Then
# a number for each: the passes in order and the backwards that are split, as bits.
_Depths = tuple[Numbers, Numbers, Numbers, Numbers, Numbers, Numbers, Numbers]

# Answers that are no value: no schedule is within the limit; as many steps were taken as may be.
NOTHING, TOO_MANY = -1, -2


@compiled
def search(
    passes: Passes, parts: int, room: Numbers, span: bool, limit: int, enough: int, most: int, best: Numbers
) -> int:
    """Return the least value of a schedule, or any value of at most `enough`, in 1/`parts` tick; write its choices to
    `best`.

    `NOTHING` if none is at most `limit`, `TOO_MANY` after `most` slots were tried. The start of each device is a node
    of its own, after those of the passes.
    """
    pairs, devices = len(passes.device), len(room)
    least, work = least_ticks(passes, _has_blocks(passes))
    asked = Question(tails_of(passes, least, devices, span), span, parts)
    every = (1 << 3 * pairs) - 1
    of = _depths(passes, least, work, devices)
    start, ticks, last, left, memory, done, split = of
    # What may be next on a device: so many choices of each depth, and how many of them were tried.
    choices = np.zeros((len(done), 4 * pairs + pairs * pairs), np.int64)
    count, at = np.zeros(len(done), np.int64), np.zeros(len(done), np.int64)
    previous, same = np.full(3 * pairs, -1), np.full(3 * pairs, -1)
    found, steps, depth, now = NOTHING, 0, 0, limit
    order = Order(done[0], split[0], previous, same)
    if not settle(passes, State(start[0], ticks[0], last[0], left[0]), order, asked, now):
        return NOTHING
    count[0] = choose(passes, start[0], memory[0], done[0], room, choices[0])
    while depth >= 0:
        if at[depth] == count[depth]:
            depth -= 1
            continue
        choice = choices[depth, at[depth]]
        at[depth] += 1
        steps += 1
        if steps > most:
            return TOO_MANY
        child = depth + 1
        _put_next(passes, work, choice, depth, of, previous, same)
        order = Order(done[child], split[child], previous, same)
        state = State(start[child], ticks[child], last[child], left[child])
        if not settle(passes, state, order, asked, now):
            continue
        if done[child] == every:
            found = _value(passes, state, order, asked, now)
            for d in range(len(best)):
                best[d] = choices[d, at[d] - 1] if d < child else -1
            if found <= enough:
                break
            now = found - 1
            continue
        count[child] = choose(passes, start[child], memory[child], done[child], room, choices[child])
        at[child] = 0
        depth = child
    return found


@inner
def _has_blocks(passes: Passes) -> bool:
    for k in range(len(passes.block)):
        for mate in range(len(passes.block)):
            if passes.block[k, mate] >= 0:
                return True
    return False


@compiled
def _value(passes: Passes, state: State, order: Order, asked: Question, most: int) -> int:
    """Return the least value of a complete order, which is at most `most`, by bisection; in 1/`parts` tick."""
    least = 0
    while least < most:
        middle = (least + most) // 2
        if settle(passes, State(state.start.copy(), state.ticks, state.last, state.left), order, asked, middle):
            most = middle
        else:
            least = middle + 1
    return least


@compiled
def _depths(passes: Passes, least: Numbers, work: Numbers, devices: int) -> _Depths:
    """Return the arrays that hold the search's state at each depth, with the state of an empty order at depth 0.

    They are start, ticks, last, left, memory, done and split; depth is the first index.
    """
    pairs = len(passes.device)
    deep = 3 * pairs + 2
    start = np.zeros((deep, 3 * pairs + devices), np.int64)
    ticks = np.zeros((deep, 3 * pairs), np.int64)
    last = np.full((deep, devices), -1)
    left, memory = np.zeros((deep, devices), np.int64), np.zeros((deep, devices), np.int64)
    done, split = np.zeros(deep, np.int64), np.zeros(deep, np.int64)
    for node in range(len(least)):
        ticks[0, node] = least[node]
    for k in range(pairs):
        left[0, passes.device[k]] += least[3 * k] + work[k]
    return start, ticks, last, left, memory, done, split


@inner
def _put_next(
    passes: Passes, work: Numbers, choice: int, depth: int, of: _Depths, previous: Numbers, same: Numbers
) -> None:
    """Append a choice to the order of its device: fill in depth + 1 from `depth`, but for bounds on starts.

    `previous` and `same` are those of `Order`, and are updated.
    """
    start, ticks, last, left, memory, done, split = of
    child = depth + 1
    for whole in (start, ticks, last, left, memory):
        for place in range(whole.shape[1]):
            whole[child, place] = whole[depth, place]
    split[child] = split[depth]
    role, k, mate = choice // OF_ROLE, choice // OF_PAIR % OF_PAIR, choice % OF_PAIR
    device, node = passes.device[k], node_of(role, k)
    done[child] = done[depth] | 1 << node
    memory[child, device] += passes.adds[role, k]
    if role == F:
        left[child, device] -= ticks[depth, node]
    elif role == B:
        left[child, device] += passes.ticks[W, k] - work[k]
        split[child] |= 1 << k
    elif role == W:
        left[child, device] -= passes.ticks[W, k]
    else:
        left[child, device] -= work[k]
        done[child] |= 1 << 3 * k + W
    ticks[child, node] = passes.ticks[role, k]
    previous[node], same[node] = last[depth, device], -1
    last[child, device] = node
    if role == F and mate != ALONE:
        other = node_of(BW, mate)
        memory[child, device] += passes.adds[BW, mate]
        left[child, device] -= work[mate]
        ticks[child, node] = ticks[child, other] = passes.block[k, mate]
        done[child] |= 3 << other
        previous[other] = previous[node]
        same[node], same[other] = other, node
