"""Choice of a device's next pass in list scheduling: by kind and start, by ranks, or as a block of two passes."""

from __future__ import annotations

import numpy as np

from solver.construction.lists.compiled import part
from solver.construction.lists.layout import (
    AHEAD,
    AT,
    BACKWARD,
    BLOCKS,
    DEEPEST,
    END,
    FIRST,
    FORWARD,
    FREE,
    IN_USE,
    KIND,
    LAG,
    LIMITED,
    LINE,
    MATE,
    MOST,
    NEEDED,
    NEVER,
    NOTHING,
    PATIENCE,
    RANKS,
    ROLE,
    ROOM,
    SHARE,
    SPLIT,
    STAGE,
    START,
    STARTS,
    STOP,
    TICKS,
    WARM_UP,
    WEIGHT,
    WHOLE,
    YIELDS,
    Rules,
    Shop,
    State,
)
from solver.construction.lists.memory import has_room


@part
def when_ready(shop: Shop, state: State, s: int, what: int, free: int) -> int:
    """Return the earliest start in ticks of a stage's next forward or backward on a device free at `free`.

    Memory is not considered. `what` is FORWARD or BACKWARD. -1 if a predecessor has not run, or it is the turn of
    another stage's micro-batch.
    """
    j, at, turn = state.turn[s, what], free, state.turn
    may = j < (shop.stages[s, STOP] if what == FORWARD else turn[s, FORWARD])
    line = shop.stages[s, LINE]
    if may and line >= 0:
        may = shop.lines[line, state.line_turn[line, what]] == j
    if may:
        for k in range(shop.needs_at[2 * s + what], shop.needs_at[2 * s + what + 1]):
            other, role = shop.needs[k, NEEDED], shop.needs[k, ROLE]
            share = shop.needs[k, SHARE]
            one = j if share < 0 else shop.shares[share, j - shop.stages[s, FIRST]]
            may = may and one < turn[other, role]
            at = max(at, state.ends[other, one, role] + shop.needs[k, LAG]) if may and one >= 0 else at
    return at if may else -1


@part
def fits(shop: Shop, state: State, d: int, s: int, j: int, what: int) -> bool:
    """True if the memory of device `d` admits the forward or backward (`what`) of micro-batch `j` on stage `s` now."""
    found = True
    if shop.devices[d, LIMITED] != 0:
        if what == FORWARD:
            found = has_room(shop, state, d, s, j)
        else:
            found = shop.devices[d, ROOM] - state.now[d, IN_USE] >= shop.stages[s, STARTS + BACKWARD]
    return found


@part
def next_weight(state: State, s: int) -> int:
    """Return the micro-batch of a stage's next weight pass, whose backward may not have run yet.

    Backwards in blocks have no weight pass: `state.turn` is moved past them.
    """
    while state.turn[s, WEIGHT] < state.turn[s, BACKWARD] and state.in_block[s, state.turn[s, WEIGHT]]:
        state.turn[s, WEIGHT] += 1
    return state.turn[s, WEIGHT]


@part
def choose(shop: Shop, rules: Rules, state: State, d: int, restrained: bool) -> None:
    """Choose the next pass of device `d` by kind and start, and record it in `state.now`, in the device's row.

    The forward that can start first is next, or a gradient that can start at most `YIELDS` ticks of the forward's stage
    after it. A weight pass is next if no other can start, or the other one starts more than `PATIENCE` ticks of the
    weight pass's stage after the device is free. With `restrained`, in-flight limits and warm-up counts are observed;
    memory always is. If nothing can start, the kind recorded is `NOTHING`.
    """
    stages, turn, flags = shop.stages, state.turn, rules.flags
    forward, forward_at, forward_tie = -1, 0, 0
    backward, backward_at, backward_tie = -1, 0, 0
    weight, weight_tie, free = -1, 0, state.now[d, FREE]
    for k in range(shop.devices[d, AT], shop.devices[d, END]):
        s = shop.on[k]
        warm_up = restrained and rules.stages[s, WARM_UP] > 0 and turn[s, BACKWARD] == stages[s, FIRST]
        j = turn[s, FORWARD]
        deferred = restrained and j - turn[s, BACKWARD] >= rules.stages[s, MOST]
        deferred = deferred or (warm_up and j - stages[s, FIRST] >= rules.stages[s, WARM_UP])
        at = -1 if deferred else when_ready(shop, state, s, FORWARD, free)
        if at >= 0 and not fits(shop, state, d, s, j, FORWARD):
            at = -1
        state.able[s, FORWARD] = at
        tie = -s if flags[DEEPEST] else j
        if at >= 0 and (forward < 0 or at < forward_at or (at == forward_at and tie < forward_tie)):
            forward, forward_at, forward_tie = s, at, tie
        deferred = warm_up and j - stages[s, FIRST] < rules.stages[s, WARM_UP]
        j = turn[s, BACKWARD]
        at = -1 if deferred else when_ready(shop, state, s, BACKWARD, free)
        if at >= 0 and not fits(shop, state, d, s, j, BACKWARD):
            at = -1
        state.able[s, BACKWARD] = at
        if at >= 0 and (backward < 0 or at < backward_at or (at == backward_at and j < backward_tie)):
            backward, backward_at, backward_tie = s, at, j
        if flags[SPLIT]:
            j = next_weight(state, s)
            if j < turn[s, BACKWARD] and (weight < 0 or j < weight_tie):
                weight, weight_tie = s, j
    kind, s, at, mate = FORWARD, forward, forward_at, -1
    if backward >= 0 and (forward < 0 or backward_at <= forward_at + rules.stages[forward, YIELDS]):
        kind, s, at = BACKWARD, backward, backward_at
    if flags[BLOCKS] >= 0:
        kind, s, at, mate = with_block(shop, rules, state, d, kind, s, at)
    if weight >= 0 and (s < 0 or at > free + rules.stages[weight, PATIENCE]):
        kind, s, at, mate = WEIGHT, weight, free, -1
    plan(state, d, at, kind, s, mate)


@part
def plan(state: State, d: int, at: int, kind: int, s: int, mate: int) -> None:
    """Record the next pass of device `d` in `state.now`: start `at`, `kind`, stage `s`, and `mate`.

    `mate` is the stage of the backward in a block with it, or -1. With `s` -1 nothing is next.
    """
    now = state.now
    now[d, START], now[d, KIND], now[d, STAGE], now[d, MATE] = at, (kind if s >= 0 else NOTHING), s, mate


@part
def with_block(
    shop: Shop, rules: Rules, state: State, d: int, kind: int, alone: int, alone_at: int
) -> tuple[int, int, int, int]:
    """Return what runs next, a block or the best single pass: (kind, stage, start, stage of the block's backward).

    It is the first block that saves time, if that starts soon enough after the best single pass, else the latter. A
    block has the kind WHOLE and the stage of its forward; a single pass has -1 as the last entry. The best single pass
    is of `kind`, on stage `alone` (-1: none), and starts at `alone_at`.
    """
    stages, turn, begin, end = shop.stages, state.turn, shop.devices[d, AT], shop.devices[d, END]
    forward, backward, at, saved, early, tie = -1, -1, 0, 0, 0, 0
    for k in range(begin, end):
        f = shop.on[k]
        for m in range(begin, end):
            b = shop.on[m]
            saves = stages[f, TICKS + FORWARD] + stages[b, TICKS + WHOLE] - shop.blocks[f, b]
            if state.able[f, FORWARD] < 0 or shop.blocks[f, b] < 0 or state.able[b, BACKWARD] < 0 or saves <= 0:
                continue
            start = max(state.able[f, FORWARD], state.able[b, BACKWARD])
            j, of = turn[b, BACKWARD], 0 if rules.flags[DEEPEST] else turn[f, FORWARD]
            sooner = start < at or (start == at and (saves > saved or (saves == saved and (j, of) < (early, tie))))
            if forward < 0 or sooner:
                forward, backward, at, saved, early, tie = f, b, start, saves, j, of
    apart = alone >= 0 and alone != (forward if kind == FORWARD else backward)
    fills_gap = apart and alone_at + stages[alone, TICKS + kind] <= at
    if forward >= 0 and (alone < 0 or (not fills_gap and at <= alone_at + saved * rules.flags[BLOCKS] // 100)):
        kind, alone, alone_at = WHOLE, forward, at
    else:
        backward = -1
    return kind, alone, alone_at, backward


@part
def weight_ahead(shop: Shop, rules: Rules, state: State, d: int) -> int:
    """Return the stage of device `d` whose weight pass is next.

    It is that of the earliest micro-batch less the stage's `AHEAD`.

    -1 if no backward of its stages still has its weight pass to run, or backwards are not split.
    """
    found, first = -1, np.int64(NEVER)
    for k in range(shop.devices[d, AT], shop.devices[d, END]):
        s = shop.on[k]
        j = state.turn[s, WEIGHT]
        if rules.flags[SPLIT] and j < state.turn[s, BACKWARD] and j - rules.stages[s, AHEAD] < first:
            found, first = s, j - rules.stages[s, AHEAD]
    return found


@part
def choose_by_rank(shop: Shop, rules: Rules, state: State, d: int, restrained: bool) -> None:
    """Choose the next pass of device `d` by rank, and record it in `state.now`, in the device's row.

    With `restrained`, in-flight limits are observed; memory always is. The pass is the one of lowest rank among all
    forwards and gradients that can start soon enough: at most `YIELDS` ticks of their stage after the earliest that any
    can start. A weight pass is chosen instead in three cases: nothing else can start, the pass chosen starts more than
    `PATIENCE` ticks of the weight pass's stage after the device is free, or a forward of lower rank than that pass
    lacks nothing but memory. If nothing can start, the kind recorded is `NOTHING`.
    """
    free, soonest = state.now[d, FREE], np.int64(NEVER)
    kind, s, at, rank, rank_without_room = NOTHING, -1, np.int64(NEVER), np.int64(NEVER), np.int64(NEVER)
    for choosing in range(2):
        for k in range(shop.devices[d, AT], shop.devices[d, END]):
            one = shop.on[k]
            for what in range(2):
                j, own = state.turn[one, what], rules.stages[one]
                if what == FORWARD and restrained and j - state.turn[one, BACKWARD] >= own[MOST]:
                    continue
                start = when_ready(shop, state, one, what, free)
                if start < 0:
                    continue
                may = fits(shop, state, d, one, j, what)
                if not choosing:
                    soonest = min(soonest, start) if may else soonest
                elif not may:
                    blocked = what == FORWARD and start <= soonest
                    rank_without_room = min(rank_without_room, own[RANKS]) if blocked else rank_without_room
                elif start <= soonest + max(0, own[YIELDS]) and own[RANKS + what] < rank:
                    kind, s, at, rank = what, one, start, own[RANKS + what]
    weight = weight_ahead(shop, rules, state, d)
    if weight >= 0 and (s < 0 or at > free + rules.stages[weight, PATIENCE] or rank_without_room < rank):
        kind, s, at = WEIGHT, weight, free
    plan(state, d, at, kind, s, -1)
