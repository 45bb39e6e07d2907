"""Moves of the local search, compiled: along the critical path, and into idle times.

Moves along the critical path are those of van Laarhoven, Aarts and Lenstra for the job shop (Operations Research 40,
1992); here units (passes or blocks) may jump over several others, passes of one kind and stage keep their micro-batch
order, and memory must suffice. `modes` is None where the modes of all passes are fixed. Where the units are jobs, ticks
stand for steps, and each stream counts as a device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipesched.compiled import inlined
from solver.local_search.arrays import Array, Modes, Rows, Shop
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class MoveParams:
    """Shares of the kinds of random moves along the critical path.

    A move jumps over up to `reach` units in a share of `several`, else over one. In a share of `into_gaps` it brings a
    later unit to where its device waits; up to the share `critical`, these included, it is along the critical path.
    """

    several: float = tuned(0.6, "of moves, jump over up to `reach` units; the others over one", 0, 1)
    into_gaps: float = tuned(0.05, "of moves, bring a later unit to where its device waits", 0, 1)
    critical: float = tuned(0.9, "of moves, less those into gaps, along the critical path; the others anywhere", 0, 1)


_PARAMS = MoveParams()
_SEVERAL, _INTO_GAPS, _CRITICAL = _PARAMS.several, _PARAMS.into_gaps, _PARAMS.critical


NOTHING, EXCHANGE = -1, -2


@inlined
def critical_path(
    shop: Shop, modes: Modes | None, rows: Rows, start: Array, device: int, path: Array, gaps: Array
) -> tuple[int, int]:
    """Trace a critical path back from the last unit of `device`, at random where there are several; divide its units.

    Units to which the path leads from the unit before on their device go into `path`. The others wait for another
    device, or for the same one and the other device at once, and go into `gaps`; the first unit of a device goes into
    neither. Both get the last unit first. Returns the numbers of units in `path` and in `gaps`. `start` is by unit, in
    ticks.
    """
    order, place = rows.order, rows.place
    found = waiting = 0
    i = order[device, rows.count[device] - 1]
    while i >= 0:
        d = shop.device[i]
        chosen, on_device, ties = -1, False, 0
        if place[i] > 0:
            before = order[d, place[i] - 1]
            if start[before] + shop.ticks[before] == start[i]:
                chosen, on_device, ties = before, True, 1
        unit = i
        while unit >= 0:
            for a in range(shop.waits_at[unit], shop.waits_at[unit + 1]):
                before = shop.waits_for[a]
                if before != chosen and start[before] + shop.ticks[before] + shop.waits_lag[a] == start[i]:
                    ties += 1
                    if np.random.random() * ties < 1.0:
                        chosen, on_device = before, False
            if modes is None:
                break
            unit = modes.mate[unit]
        if on_device:
            path[found] = i
            found += 1
        elif place[i] > 0:
            gaps[waiting] = i
            waiting += 1
        i = chosen
    return found, waiting


@inlined
def shift(shop: Shop, order: Array, place: Array, d: int, source: int, target: int) -> None:
    """Move the unit at place `source` of device `d` to place `target`.

    The units between close up. Moving it back undoes it. `order` and `place` are changed. Units of one line keep their
    order: where two meet, the one that is met moves on instead.
    """
    moved = order[d, source]
    step = 1 if target > source else -1
    k = source
    while k != target:
        left = order[d, k + step]
        if shop.line[left] == shop.line[moved]:
            # Units of one line keep their order: the unit that is met moves on instead.
            left, moved = moved, left
        order[d, k] = left
        place[left] = k
        k += step
    order[d, target] = moved
    place[moved] = target


@inlined
def pick(
    shop: Shop,
    count: Array,
    place: Array,
    path: Array,
    critical: int,
    gaps: Array,
    waiting: int,
    reach: int,
    distant: float,
) -> tuple[int, int, int]:
    """Draw a move: return the device, and the places that a unit leaves and goes to; equal places mean no move.

    Either a later unit goes before one of `gaps`, for which its device waits; or a unit of `path` (sometimes any unit)
    goes to an earlier place, or the unit before it to a later one. Most moves go at most `reach` places; the share
    `distant` of any length. `critical` and `waiting` are the lengths of `path` and `gaps`. `count` is by device,
    `place` by unit.
    """
    n = shop.ticks.shape[0]
    far = 1
    if np.random.random() < distant:
        far = distance(n)
    elif np.random.random() < _SEVERAL:
        far = np.random.randint(1, reach + 1)
    draw = np.random.random()
    if waiting > 0 and draw < _INTO_GAPS:
        # A later unit is moved into the time in which the device waits.
        unit = gaps[np.random.randint(waiting)]
        d, target = shop.device[unit], place[unit]
        source, earlier = min(count[d] - 1, target + far), True
    else:
        unit = path[np.random.randint(critical)] if critical > 0 and draw < _CRITICAL else np.random.randint(n)
        d, unit_place = shop.device[unit], place[unit]
        if unit_place <= 0:
            return d, 0, 0
        # Either the later of the two moves forward, or the earlier one moves back.
        earlier = np.random.random() < 0.5
        source = unit_place if earlier else unit_place - 1
        target = max(0, source - far) if earlier else min(count[d] - 1, source + far)
    return d, source, target


@inlined
def fill(shop: Shop, order: Array, count: Array, start: Array) -> tuple[int, int, int]:
    """Draw a move of a later unit into an idle time: return a random device, and the unit's place and new place on it.

    The idle times are those between two units, and are drawn in proportion to their lengths; if there are none, the new
    place is 0. Nothing is moved or checked here. `order[d, :count[d]]` are the units of device d, `start` by unit its
    start in ticks. Equal places mean no move, as on a device without units.
    """
    d = np.random.randint(count.shape[0])
    if count[d] == 0:
        return d, 0, 0
    idle, target = 0, 0
    for k in range(1, count[d]):
        before = order[d, k - 1]
        gap = start[order[d, k]] - start[before] - shop.ticks[before]
        idle += gap
        if np.random.random() * idle < gap:
            target = k
    return d, min(count[d] - 1, target + distance(shop.ticks.shape[0])), target


@inlined
def distance(n: int) -> int:
    """Return a random number of places from 1 to `n`, each order of magnitude equally likely."""
    return int(n ** np.random.random())
