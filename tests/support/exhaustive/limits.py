"""Lower bounds on the starts of all passes under orders that are known in part: compiled.

A start is counted in units. Each arc adds one unit, which is too little to count, so that a circle of passes without
length is found as any other is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipesched.compiled import compiled, inner

Numbers = Any
# Units of the part of a tick in which values are counted, far more than there are arcs on a path.
UNIT = 4096
NEVER = -(2**50)

# Roles of a pass: rows of what passes take. A backward, split or full, is one node.
F, B, W, BW = range(4)


class Passes(NamedTuple):
    """Passes of each pair of a stage and a micro-batch, k: its node 3k is the forward, 3k+1 the backward, 3k+2 W.

    `device[k]`; `ticks[role, k]`, -1 for what there is not; `takes[role, k]`, the memory from its start, and
    `adds[role, k]`, how much more is in use after its end than before its start; `block[k, q]`, the ticks of a block of
    the forward of k and the full backward of q, -1 where there is none.

    `needs[node]` are the passes of its own device that surely come first, as bits. `order` are nodes in topological
    order, and the i-th starts `lag[a]` after the end of `before[a]` for a from `first[i]` to `first[i + 1]`.
    """

    device: Numbers
    ticks: Numbers
    takes: Numbers
    adds: Numbers
    block: Numbers
    needs: Numbers
    order: Numbers
    first: Numbers
    before: Numbers
    lag: Numbers


class State(NamedTuple):
    """Facts about passes while they are put in order.

    `start` has lower bounds on starts, first of passes, then of devices; `ticks` the duration of each pass, `last` the
    last pass of each device (-1: none), `left` the ticks of work that it still has.
    """

    start: Numbers
    ticks: Numbers
    last: Numbers
    left: Numbers


class Order(NamedTuple):
    """The order so far: bit sets of the passes in it, `ran`, and of the backwards known to be `split`.

    `previous` has the pass before each one on its device, `same` the other pass of its block; -1 for none.
    """

    ran: int
    split: int
    previous: Numbers
    same: Numbers


class Question(NamedTuple):
    """The objective of a search: `tails` of passes in ticks, True if the span counts (else the makespan).

    Values are counted in whole numbers of 1/`parts` tick.
    """

    tails: Numbers
    span: bool
    parts: int


@compiled
def least_ticks(passes: Passes, blocks: bool) -> tuple[Numbers, Numbers]:
    """Return the least ticks from start to end of each node, and the least work of a backward in all, by pair.

    A full backward in a block of its device takes no time of its own (`blocks`: there are some).
    """
    pairs = len(passes.device)
    least, work = np.zeros(3 * pairs, np.int64), np.zeros(pairs, np.int64)
    for k in range(pairs):
        least[3 * k] = passes.ticks[F, k]
        whole = passes.ticks[BW, k]
        for other in range(pairs):
            if passes.block[other, k] >= 0:
                whole = min(whole, passes.block[other, k])
            if passes.block[k, other] >= 0:
                least[3 * k] = min(least[3 * k], passes.block[k, other])
        own = 0 if blocks else whole
        split = passes.ticks[B, k] + passes.ticks[W, k]
        if passes.ticks[BW, k] < 0:
            least[3 * k + 1], work[k] = passes.ticks[B, k], split
        elif passes.ticks[W, k] < 0:
            least[3 * k + 1], work[k] = whole, own
        else:
            least[3 * k + 1] = min(passes.ticks[B, k], whole)
            work[k] = min(split, own)
        least[3 * k + 2] = max(0, passes.ticks[W, k])
    return least, work


@compiled
def tails_of(passes: Passes, least: Numbers, devices: int, span: bool) -> Numbers:
    """Return for each node the least ticks from its end to the last end on each device that surely follows, else
    `NEVER`.

    For the makespan (not `span`) there is one column, for the last end on any device.
    """
    pairs, owners = len(passes.device), devices if span else 1
    tails = np.full((3 * pairs, owners), NEVER)
    for e in range(owners):
        for k in range(pairs):
            if not span or passes.device[k] == e:
                for node in range(3 * k, 3 * k + 3):
                    tails[node, e] = 0
        for i in range(len(passes.order) - 1, -1, -1):
            node = passes.order[i]
            # W runs for itself only if it must.
            if tails[node, e] < 0 or (node % 3 == 2 and passes.ticks[BW, node // 3] >= 0):
                continue
            for a in range(passes.first[i], passes.first[i + 1]):
                further = passes.lag[a] + least[node] + tails[node, e]
                tails[passes.before[a], e] = max(tails[passes.before[a], e], further)
    return tails


@compiled
def settle(passes: Passes, state: State, order: Order, asked: Question, limit: int) -> bool:
    """Raise the bounds on starts to the least that order, dependences and `limit` allow; return False if none is within
    it.

    `limit` is on the objective, in 1/`parts` tick.
    """
    start, ticks, last, left = state
    tails, span, parts = asked
    n, devices, tick = len(ticks), len(last), parts * UNIT
    until = limit * UNIT + n
    for _ in range(3):
        rounds, changed = 0, True
        while changed:
            rounds += 1
            if rounds > n + devices + 1:
                return False
            changed = raised(passes, state, order, asked, until)
            if not span:
                for p in range(n):
                    if start[p] + (ticks[p] + tails[p, 0]) * tick > until and (p % 3 < 2 or order.split >> p // 3 & 1):
                        return False
        for d in range(devices):
            begin, tails_left = 2**60, np.full(tails.shape[1], 2**60)
            for k in range(len(passes.device)):
                if passes.device[k] != d:
                    continue
                for role in range(3):
                    p = 3 * k + role
                    if order.ran >> p & 1 or (role == W and not order.split >> k & 1):
                        continue
                    begin = min(begin, start[p])
                    # After a backward that may be split its weight pass may be the last.
                    end = p + 1 if role == B and passes.ticks[W, k] >= 0 else p
                    for e in range(len(tails_left)):
                        tails_left[e] = min(tails_left[e], tails[end, e])
            if begin == 2**60:
                continue
            for e in range(len(tails_left)):
                if tails_left[e] < 0:
                    continue
                end_ = begin + (left[d] + tails_left[e]) * tick
                if span and end_ - until > start[n + e]:
                    start[n + e] = end_ - until
                    changed = True
                elif not span and end_ > until:
                    return False
        if not changed:
            break
    return True


@inner
def raised(passes: Passes, state: State, order: Order, asked: Question, until: int) -> bool:
    """Propagate once over all arcs; return True if the bound on any start was raised."""
    start, ticks, last, left = state
    ran, split, previous, same = order
    span, n, tick, changed = asked.span, len(ticks), asked.parts * UNIT, False
    for i in range(len(passes.order)):
        p = passes.order[i]
        device = passes.device[p // 3]
        if p % 3 == W and not split >> p // 3 & 1:
            continue
        begin = max(start[p], start[n + device])
        for a in range(passes.first[i], passes.first[i + 1]):
            q = passes.before[a]
            begin = max(begin, start[q] + (ticks[q] + passes.lag[a]) * tick + 1)
        if ran >> p & 1:
            q = previous[p]
            if same[p] >= 0:
                begin = max(begin, start[same[p]])
        else:
            q = last[device]
        if q >= 0:
            begin = max(begin, start[q] + ticks[q] * tick + 1)
        if begin > start[p]:
            start[p] = begin
            changed = True
        if span:
            end = begin + ticks[p] * tick - until
            if last[device] == p:
                end += left[device] * tick
            if end > start[n + device]:
                start[n + device] = end
                changed = True
    return changed
