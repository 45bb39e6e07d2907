"""Memory along the orders of devices, compiled: the level after every place, and the test if a move fits."""

from __future__ import annotations

from pipesched.compiled import inlined, inner
from solver.local_search.arrays import Array, Rows, Shop


@inlined
def fill_levels(shop: Shop, rows: Rows, level: Array, d: int, low: int) -> None:
    """Write to `level[d, k]` the memory in use after place k of device `d`, for k from `low` on.

    A place is an index in the device's order `rows.order[d]`; the level before `low` must be right.
    """
    in_use = level[d, low - 1] if low > 0 else 0
    for k in range(low, rows.count[d]):
        i = rows.order[d, k]
        in_use += shop.takes[i] - shop.gives[i]
        level[d, k] = in_use


@inlined
def fits_from(shop: Shop, rows: Rows, level: Array, d: int, low: int, high: int) -> bool:
    """True if the capacity of device `d` (negative: unlimited) suffices at places `low` to `high`, both included.

    `level[d, k]` is the memory in use after place k of the device's order; only that at `low - 1` is read.
    """
    if shop.capacity[d] < 0:
        return True
    in_use = level[d, low - 1] if low > 0 else 0
    for k in range(low, high + 1):
        i = rows.order[d, k]
        in_use += shop.takes[i]
        if in_use > shop.capacity[d]:
            return False
        in_use -= shop.gives[i]
    return True


@inner
def all_fit(shop: Shop, rows: Rows, level: Array) -> bool:
    """True if memory suffices while each unit of all devices' orders runs; `level` is neither read nor written."""
    d, devices = 0, rows.count.shape[0]
    while d < devices and fits_from(shop, rows, level, d, 0, rows.count[d] - 1):
        d += 1
    return d == devices
