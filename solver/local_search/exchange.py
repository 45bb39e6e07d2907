"""Moves that exchange two unequal micro-batches in all orders at once, for chains on the same devices.

Where the order of micro-batches is free, it matters which goes first, and no short move changes that on every device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipesched.compiled import inner
from pipesched.deadline import SHORT, asking
from pipesched.int64_arrays import int64_array
from solver.local_search.arrays import Array, Rows, Shop
from solver.local_search.units.order_units import Units
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class ExchangeParams:
    """Share of moves that exchange two micro-batches in all orders.

    `moves` is that share, where there is something to exchange.
    """

    moves: float = tuned(0.02, "of all moves, where there is something to exchange; each is simulated in full", 0, 1)


EXCHANGING = ExchangeParams().moves
NOTHING = np.zeros((0, 0), np.int64)


def exchangeable(units: object) -> Array:
    """Return the numbers of units that may change places, an array of shape (chains, units), empty if there are none.

    A row has the units of one chain; units of one column are of the same kind and device, so that two whole rows can
    change places. If there are several sets of chains that are alike, the largest is returned. There are none if no two
    chains are alike, and also for units other than `Units`, with overlapped blocks, or where chains share a queue.
    """
    if not isinstance(units, Units) or units.problem.walks.queues or any(len(slot) > 1 for slot in units.slots):
        return NOTHING
    problem = units.problem
    at = {stage: (n, k) for n, chain in enumerate(problem.placement.chains) for k, stage in enumerate(chain)}
    rows: list[dict[tuple[int, str, int], int]] = [{} for _ in problem.placement.chains]
    for number, p in enumerate(slot[0] for slot in asking(units.slots, SHORT)):
        chain, place = at[p.stage]
        rows[chain][place, p.kind.value, p.microbatch - problem.walking[chain].start] = number
    alike: dict[tuple[tuple[object, ...], ...], list[list[int]]] = {}
    for row in rows:
        keys = sorted(row)
        walk = tuple((*key, units.device[row[key]]) for key in asking(keys, SHORT))
        alike.setdefault(walk, []).append([row[key] for key in keys])
    most = max(alike.values(), key=len)
    return int64_array(most) if len(most) > 1 else NOTHING


@inner
def draw_pair(groups: Array) -> tuple[int, int]:
    """Return the indices of two different random rows of `groups`, which has the units of a chain in each row."""
    count = groups.shape[0]
    one = np.random.randint(count)
    return one, (one + np.random.randint(1, count)) % count


@inner
def exchange(shop: Shop, rows: Rows, one: Array, other: Array) -> None:
    """Let each unit of row `one` and its counterpart in row `other` change places; doing it again undoes it.

    Both are arrays of units, those of one index on the same device. The orders `rows.order` and `rows.place` change.
    """
    for k in range(one.shape[0]):
        i, j = one[k], other[k]
        d = shop.device[i]
        rows.order[d, rows.place[i]], rows.order[d, rows.place[j]] = j, i
        rows.place[i], rows.place[j] = rows.place[j], rows.place[i]
