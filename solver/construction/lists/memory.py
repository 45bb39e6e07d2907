"""Memory of a device during a run: a forward starts only if all micro-batches in flight can still end.

Micro-batches in flight on a device end oldest first, and each then frees its memory (the banker's rule), so that memory
never deadlocks.
"""

from __future__ import annotations

from solver.construction.lists.compiled import part
from solver.construction.lists.layout import (
    CHAIN,
    COUNT,
    FORWARD,
    HIGH,
    HOLDS,
    IN_FLIGHT,
    IN_USE,
    LOW,
    NOT_BEGUN,
    OVER,
    OWES,
    OWING,
    ROOM,
    STARTS,
    TOTALS,
    Shop,
    State,
)


@part
def has_room(shop: Shop, state: State, d: int, s: int, j: int) -> bool:
    """True if memory of device `d` admits the forward of micro-batch `j` on stage `s` and all in flight can end."""
    now, batches, takes = state.now, state.batches, shop.stages[s, STARTS]
    left = shop.devices[d, ROOM] - now[d, IN_USE] - takes
    begun = batches[d, j, COUNT]
    own = 0 if begun == OVER else batches[d, j, OWES]
    own = shop.owed[d, shop.stages[s, CHAIN]] if begun == NOT_BEGUN else own
    others = now[d, OWING] - (1 if begun == IN_FLIGHT and own != 0 else 0)
    fits = left >= 0
    if fits and (others > 0 or own > takes):
        for one in range(min(now[d, LOW], j), max(now[d, HIGH], j) + 1):
            if one == j:
                fits = fits and left >= own - takes
                left += takes + (batches[d, j, HOLDS] if begun == IN_FLIGHT else 0)
            elif batches[d, one, COUNT] == IN_FLIGHT:
                fits = fits and left >= batches[d, one, OWES]
                left += batches[d, one, HOLDS]
    return fits


@part
def hold(shop: Shop, state: State, d: int, s: int, j: int, kind: int) -> None:
    """Add the memory that a pass of stage `s` takes, less what it frees, to device `d` and to micro-batch `j` on it.

    `kind` is FORWARD, BACKWARD, WEIGHT or WHOLE. `state.now` and `state.batches` change.
    """
    now, batches = state.now, state.batches
    change, before = shop.stages[s, TOTALS + kind], batches[d, j, COUNT]
    now[d, IN_USE] += change
    if before != IN_FLIGHT:
        batches[d, j, HOLDS] = 0
        batches[d, j, OWES] = shop.owed[d, shop.stages[s, CHAIN]] if before == NOT_BEGUN else 0
    owing = before == IN_FLIGHT and batches[d, j, OWES] != 0
    batches[d, j, HOLDS] += change
    if kind == FORWARD:
        batches[d, j, OWES] -= change
    over = batches[d, j, HOLDS] == 0 and batches[d, j, OWES] == 0
    batches[d, j, COUNT] = OVER if over else IN_FLIGHT
    now[d, OWING] += (1 if not over and batches[d, j, OWES] != 0 else 0) - (1 if owing else 0)
    if not over:
        now[d, LOW], now[d, HIGH] = min(now[d, LOW], j), max(now[d, HIGH], j)
    while now[d, LOW] < now[d, HIGH] and batches[d, now[d, LOW], COUNT] != IN_FLIGHT:
        now[d, LOW] += 1
