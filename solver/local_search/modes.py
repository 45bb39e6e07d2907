"""Arrays of operations joined to full backwards and overlapped blocks, and the primitive changes to them, compiled.

A B joined to its W is a full (fused) backward; the W then has no place. An F joined to a full backward is an overlapped
block, represented in the order by the B; the arcs of the F then lead to the B. `place` is -1 for units without a place.
"""

from __future__ import annotations

from pipesched.compiled import inner
from solver.local_search.arrays import Modes, Rows, Shop

# Rank of units without a place: above all others.
ABSENT = 2**62
FORWARD, BACKWARD, WEIGHT = range(3)


# Columns of `Modes.of`: the role; the other half (the W of a B, the B of a W, or -1); whether a B is fused, and whether
# that is free to change; duration and memory by itself, and of a B joined to its W.
COLUMNS = range(10)
ROLE, OTHER, FUSED, FREE, TICKS, TAKES, GIVES, WHOLE_TICKS, WHOLE_TAKES, WHOLE_GIVES = COLUMNS


@inner
def renew(shop: Shop, modes: Modes, b: int) -> None:
    """Set duration and memory of backward `b` in `shop` according to its current mode: split, full, or in a block."""
    at = WHOLE_TICKS if modes.of[b, FUSED] else TICKS
    shop.ticks[b], shop.takes[b], shop.gives[b] = modes.of[b, at], modes.of[b, at + 1], modes.of[b, at + 2]
    f = modes.mate[b]
    if f >= 0:
        shop.ticks[b] = modes.block[shop.line[f], shop.line[b]]
        shop.takes[b] += modes.of[f, TAKES]
        shop.gives[b] += modes.of[f, GIVES]


@inner
def lead(shop: Shop, modes: Modes, f: int, node: int) -> None:
    """Make the arcs of forward `f` lead to and from operation `node`, which stands for it in the order.

    Changed are the entries of `shop.waits_for` of its successors, and those of `shop.feeds_to` of its predecessors.
    """
    for a in range(shop.feeds_at[f], shop.feeds_at[f + 1]):
        shop.waits_for[modes.twin[1, a]] = node
    for a in range(shop.waits_at[f], shop.waits_at[f + 1]):
        shop.feeds_to[modes.twin[0, a]] = node


@inner
def attach(shop: Shop, modes: Modes, rows: Rows, f: int, b: int) -> None:
    """Join forward `f` to backward `b` as a block; the forward loses its place.

    Its entry in `rows.order` is not removed here. Duration and memory of `b` in `shop` become those of the block.
    """
    modes.mate[b] = f
    rows.place[f] = -1
    lead(shop, modes, f, b)
    renew(shop, modes, b)


@inner
def detach(shop: Shop, modes: Modes, b: int) -> int:
    """Separate the forward joined to backward `b` and return it; it has no place yet."""
    f = modes.mate[b]
    modes.mate[b] = -1
    lead(shop, modes, f, f)
    renew(shop, modes, b)
    return f


@inner
def insert(rows: Rows, d: int, k: int, node: int) -> None:
    """Put operation `node` at place `k` of device `d`; those from there on move up by one.

    `rows.count[d]` rises by one.
    """
    order, place = rows.order, rows.place
    for q in range(rows.count[d], k, -1):
        order[d, q] = order[d, q - 1]
        place[order[d, q]] = q
    rows.count[d] += 1
    order[d, k], place[node] = node, k


@inner
def remove(rows: Rows, d: int, k: int) -> None:
    """Remove the unit at place `k` of device `d`; later ones move down by one."""
    order, place = rows.order, rows.place
    place[order[d, k]] = -1
    rows.count[d] -= 1
    for q in range(k, rows.count[d]):
        order[d, q] = order[d, q + 1]
        place[order[d, q]] = q
