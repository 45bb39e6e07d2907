"""One run of the list scheduler over arrays: repeatedly, the device whose next pass starts first runs it.

The same functions are compiled, which takes seconds once, or interpreted, a hundred times slower.
"""

from __future__ import annotations

import numpy as np

from pipesched.compiled import compiled
from solver.construction.lists.choice import choose, choose_by_rank
from solver.construction.lists.compiled import making, part
from solver.construction.lists.layout import (
    BACKWARD,
    FIRST,
    FORWARD,
    FREE,
    KIND,
    LATER,
    LINE,
    LOW,
    MATE,
    NOTHING,
    NOW_COLUMNS,
    OPENED,
    RANKED,
    STAGE,
    START,
    STOP,
    TICKS,
    WEIGHT,
    WHOLE,
    Array,
    Rules,
    Shop,
    State,
)
from solver.construction.lists.memory import hold


@making
def nothing_put(shop: Shop) -> State:
    """Return the `State` of a list scheduling run before its first pass: all times 0, no memory in use.

    The next micro-batch of each stage is the first one of its chain.
    """
    count, stages, most, kind = len(shop.devices), len(shop.stages), shop.stages[:, STOP].max(), shop.stages.dtype
    turn = np.zeros((stages, 3), np.int64)
    for s in range(stages):
        turn[s] = shop.stages[s, FIRST]
    now = np.zeros((count, NOW_COLUMNS), kind)
    now[:, LOW], now[:, OPENED] = most, -1
    return State(
        now,
        np.zeros((count, most, 3), kind),
        turn,
        np.zeros((stages, most, 2), kind),
        np.zeros((stages, most), np.bool_),
        np.zeros((stages, 2), kind),
        np.zeros((len(shop.lines), 2), np.int64),
    )


@part
def earliest(now: Array, later: bool) -> int:
    """Return the device whose next pass, recorded in `now`, starts first; -1 if none has a next pass.

    `now` is `State.now`, a row for each device. Ties go to the last device if `later`, else the first.
    """
    best = -1
    for d in range(len(now)):
        if now[d, KIND] != NOTHING:
            start = now[d, START]
            if best < 0 or start < now[best, START] or (start == now[best, START] and later):
                best = d
    return best


@part
def put_pass(shop: Shop, state: State, put: Array, done: int, d: int, s: int, kind: int, end: int) -> None:
    """Record in row `done` of `put` that device `d` runs the next pass of this kind on stage `s`, until tick `end`.

    The row is (kind, stage, micro-batch). `kind` is FORWARD, BACKWARD or WEIGHT, or WHOLE for the full backward of a
    block. The state of the run, memory included, is updated.
    """
    role = BACKWARD if kind == WHOLE else kind
    j = state.turn[s, role]
    put[done, 0], put[done, 1], put[done, 2] = kind, s, j
    state.turn[s, role] += 1
    if kind != WEIGHT:
        state.ends[s, j, role] = end
        state.in_block[s, j] = kind == WHOLE
        if shop.stages[s, LINE] >= 0:
            state.line_turn[shop.stages[s, LINE], role] += 1
    hold(shop, state, d, s, j, kind)


@part
def put_next(shop: Shop, state: State, put: Array, done: int, d: int) -> tuple[int, int]:
    """Run the next pass or block of device `d`, as recorded in `state.now`, and write it to `put` from row `done` on.

    Returns the number of rows of `put` in use then, and the number of new passes that are not W: 2 for a block, whose
    forward is in the first of two rows, else 1 or 0.
    """
    now = state.now
    kind, s, start = now[d, KIND], now[d, STAGE], now[d, START]
    if now[d, OPENED] < 0:
        now[d, OPENED] = start
    end = start + (shop.blocks[s, now[d, MATE]] if kind == WHOLE else shop.stages[s, TICKS + kind])
    now[d, FREE] = end
    put_pass(shop, state, put, done, d, s, FORWARD if kind == WHOLE else kind, end)
    if kind == WHOLE:
        put_pass(shop, state, put, done + 1, d, now[d, MATE], WHOLE, end)
    return (done + 2, 2) if kind == WHOLE else (done + 1, 1 if kind != WEIGHT else 0)


@part
def go_on(shop: Shop, s: int, touched: Array, many: int) -> int:
    """Append to `touched` the devices whose next pass a pass of stage `s` may change.

    `many` entries of `touched` are in use before. These devices are listed in `shop.near`. Returns the number of
    entries in use then; a device may be there twice.
    """
    for k in range(shop.near_at[s], shop.near_at[s + 1]):
        touched[many] = shop.near[k]
        many += 1
    return many


@part
def touch_all(touched: Array, count: int) -> None:
    """Write the devices 0 to `count` - 1 to the first entries of `touched`, one by one.

    Numba takes two seconds to compile a slice that is set to an array.
    """
    for device in range(count):
        touched[device] = device


def run_list(shop: Shop, rules: Rules, put: Array, halt: Array) -> tuple[int, int, int, int, int]:
    """Make a list schedule: fill `put` with (kind, stage, micro-batch), a row for each pass in the order of scheduling.

    Returns the number of rows, -1 if memory deadlocks; then, in ticks, the longest time from a device's first start to
    its last end, the latest end, and the sums of such times and of such ends over all devices. The backward of a block
    has the kind `WHOLE` and is in the row after its forward. `shop` has the problem, `rules` what is preferred. If
    `halt[0]` is set by another thread, the run ends early, as in a deadlock.
    """
    state, count = nothing_put(shop), len(shop.devices)
    now, left = state.now, 2 * (shop.stages[:, STOP] - shop.stages[:, FIRST]).sum()
    touched, many, later = np.zeros(2 * len(shop.near) + count, np.int64), count, rules.flags[LATER] != 0
    touch_all(touched, count)
    done, restrained = 0, True
    while not halt[0]:
        for k in range(many):
            if rules.flags[RANKED]:
                choose_by_rank(shop, rules, state, touched[k], restrained)
            else:
                choose(shop, rules, state, touched[k], restrained)
        best = earliest(now, later)
        if best < 0 and not (restrained and left):
            break
        many = 0
        if best >= 0:
            s, mate = now[best, STAGE], now[best, MATE]
            done, fewer = put_next(shop, state, put, done, best)
            left -= fewer
            many = go_on(shop, s, touched, many)
            if mate >= 0:
                many = go_on(shop, mate, touched, many)
        if best < 0 or not restrained:
            # No pass could run: for one pass the memory that is reserved against deadlocks may be used.
            restrained, many = best >= 0, count
            touch_all(touched, count)
    longest, latest, spans, ends = 0, 0, 0, 0
    for device in range(count):
        end = now[device, FREE]
        span = end - max(now[device, OPENED], 0)
        longest, latest, spans, ends = max(longest, span), max(latest, end), spans + span, ends + end
    return (-1 if left else done), longest, latest, spans, ends


compiled_run = compiled(run_list)
