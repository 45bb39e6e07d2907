"""Elementary edits of orders and modes that make up an annealing move with open modes, compiled; and undoing.

The edits of a move are recorded in `log`, by which `undo` reverts them. `touched` is their extent: the lowest and
highest place on the device, and the least and highest rank of the units there.
"""

from __future__ import annotations

from pipesched.compiled import inlined, inner
from solver.local_search.arrays import Modes, Rows, Shop
from solver.local_search.modes import ABSENT, FORWARD, FUSED, OTHER, ROLE, attach, detach, insert, remove, renew

# Edits that a move may consist of at most.
MOST_EDITS = 12
_CARRY, _JOIN, _CUT, _FUSE, _SPLIT = range(5)


@inner
def begin(modes: Modes) -> None:
    """Begin a move: clear the log of edits (`modes.log`) and the touched range (`modes.touched`)."""
    modes.log[0, 0] = 0
    modes.touched[0], modes.touched[1], modes.touched[2], modes.touched[3] = ABSENT, -1, ABSENT, -1


@inner
def touch(modes: Modes, rows: Rows, d: int, low: int, high: int) -> None:
    """Extend the touched range by places `low` to `high` of device `d`, and by the ranks of the units there.

    A rank is a place in the topological sequence; units that have none yet do not count.
    """
    modes.touched[0] = min(modes.touched[0], low)
    modes.touched[1] = max(modes.touched[1], high)
    for k in range(low, high + 1):
        rank = rows.rank[rows.order[d, k]]
        modes.touched[2] = min(modes.touched[2], rank)
        if rank != ABSENT:
            modes.touched[3] = max(modes.touched[3], rank)


@inner
def note(modes: Modes, edit: int, d: int, x: int, y: int) -> None:
    """Append an edit of device `d` to the log, by which `undo` reverts it.

    `edit` is its kind, which decides what `x` and `y` are: the places that a unit left and went to (`_CARRY`); the
    place of a block, and 1 if its forward is the first of the two passes, else 0 (`_JOIN`, `_CUT`); or a backward and
    the place of its weight pass (`_FUSE`, `_SPLIT`).
    """
    modes.log[0, 0] += 1
    entry = modes.log[modes.log[0, 0]]
    entry[0], entry[1], entry[2], entry[3] = edit, d, x, y


@inner
def fuse(shop: Shop, modes: Modes, rows: Rows, b: int) -> None:
    """Make the split backward `b` a full one, at its place in the order; its weight pass loses its own place.

    Duration and memory of `b` in `shop` become those of both.
    """
    d, w = shop.device[b], modes.of[b, OTHER]
    k = rows.place[w]
    touch(modes, rows, d, rows.place[b], rows.place[b])
    touch(modes, rows, d, k, k)
    remove(rows, d, k)
    modes.of[b, FUSED] = 1
    renew(shop, modes, b)
    note(modes, _FUSE, d, b, k)


@inner
def split(shop: Shop, modes: Modes, rows: Rows, b: int, k: int) -> None:
    """Split the full backward `b`: its weight pass gets place `k` of the device's order, which is after the backward.

    Duration and memory of `b` in `shop` become its own.
    """
    d = shop.device[b]
    insert(rows, d, k, modes.of[b, OTHER])
    modes.touched[1] += 1
    touch(modes, rows, d, rows.place[b], rows.place[b])
    touch(modes, rows, d, k, k)
    modes.of[b, FUSED] = 0
    renew(shop, modes, b)
    note(modes, _SPLIT, d, b, k)


@inner
def join(shop: Shop, modes: Modes, rows: Rows, d: int, k: int) -> None:
    """Make a block of the forward and the full backward, in either order, at places `k` and `k + 1` of device `d`.

    The block takes place `k`; later units move down by one.
    """
    touch(modes, rows, d, k, k + 1)
    f, b = rows.order[d, k], rows.order[d, k + 1]
    forward_first = modes.of[f, ROLE] == FORWARD
    if not forward_first:
        f, b = b, f
    remove(rows, d, rows.place[f])
    attach(shop, modes, rows, f, b)
    note(modes, _JOIN, d, k, forward_first)


@inner
def cut(shop: Shop, modes: Modes, rows: Rows, d: int, k: int, forward_first: int) -> None:
    """Replace the block at place `k` of device `d` by its two passes.

    The forward is first if `forward_first` is 1, else second. They get the places `k` and `k + 1`.
    """
    insert(rows, d, k + 1 - forward_first, detach(shop, modes, rows.order[d, k]))
    modes.touched[1] += 1
    touch(modes, rows, d, k, k + 1)
    note(modes, _CUT, d, k, forward_first)


@inner
def carry(shop: Shop, modes: Modes, rows: Rows, d: int, source: int, target: int) -> int:
    """Move the unit at place `source` of device `d` towards `target`.

    Return the place reached. Moving it back undoes it. Operations of one line (a role on a stage) keep their order, in
    blocks too: where two meet, the other one moves on instead. The move ends where it would put a split backward into a
    block.
    """
    order, place = rows.order, rows.place
    moved, k = order[d, source], source
    step = 1 if target > source else -1
    touch(modes, rows, d, min(source, target), max(source, target))
    while k != target:
        left = order[d, k + step]
        if shop.line[left] == shop.line[moved] and _joined_line(shop, modes, left) == _joined_line(shop, modes, moved):
            # Units of one kind keep their order: the unit that is met moves on instead.
            left, moved = moved, left
        elif modes.mate[left] >= 0 or modes.mate[moved] >= 0:
            if not _may_pass(shop, modes, left, moved):
                break
            left, moved = _pass(shop, modes, rows, left, moved)
        order[d, k], place[left] = left, k
        k += step
    order[d, k], place[moved] = moved, k
    note(modes, _CARRY, d, source, k)
    return k


@inner
def _joined_line(shop: Shop, modes: Modes, node: int) -> int:
    """Return the line (number of a role on a stage) of the forward joined to backward `node` in a block.

    -1 if none is.
    """
    return shop.line[modes.mate[node]] if modes.mate[node] >= 0 else -1


@inner
def _may_pass(shop: Shop, modes: Modes, left: int, moved: int) -> bool:
    """True if no split backward enters a block when units `left` and `moved`, one of them a block, change places."""
    return shop.line[left] != shop.line[moved] or (modes.of[left, FUSED] and modes.of[moved, FUSED])


@inner
def _pass(shop: Shop, modes: Modes, rows: Rows, left: int, moved: int) -> tuple[int, int]:
    """Let two neighbouring units change places, at least one of them a block; return them as (left, moved) afterwards.

    Forwards of one line, or backwards of one line, change blocks instead, so that they keep their order. A line is a
    role on a stage.
    """
    if shop.line[left] == shop.line[moved]:
        # The backwards change sides: equivalent to exchanging the forwards while the backwards stay in order.
        f = detach(shop, modes, left) if modes.mate[left] >= 0 else -1
        g = detach(shop, modes, moved) if modes.mate[moved] >= 0 else -1
        if f >= 0:
            attach(shop, modes, rows, f, moved)
        if g >= 0:
            attach(shop, modes, rows, g, left)
        return moved, left
    f = left if modes.of[left, ROLE] == FORWARD else modes.mate[left]
    g = moved if modes.of[moved, ROLE] == FORWARD else modes.mate[moved]
    if f < 0 or g < 0 or shop.line[f] != shop.line[g]:
        return left, moved
    left_block, moved_block = modes.mate[left] >= 0, modes.mate[moved] >= 0
    if left_block:
        detach(shop, modes, left)
    if moved_block:
        detach(shop, modes, moved)
    if left_block:
        attach(shop, modes, rows, g, left)
    else:
        left = g
    if moved_block:
        attach(shop, modes, rows, f, moved)
    else:
        moved = f
    return left, moved


@inlined
def undo(shop: Shop, modes: Modes, rows: Rows) -> None:
    """Revert the edits in the log, the last one first, and clear the log."""
    for number in range(modes.log[0, 0], 0, -1):
        entry = modes.log[number]
        edit, d, x, y = entry[0], entry[1], entry[2], entry[3]
        modes.log[0, 0] = number  # later edits are logged after it
        if edit == _CARRY:
            carry(shop, modes, rows, d, y, x)
        elif edit == _JOIN:
            cut(shop, modes, rows, d, x, y)
        elif edit == _CUT:
            join(shop, modes, rows, d, x)
        elif edit == _FUSE:
            split(shop, modes, rows, x, y)
        else:
            fuse(shop, modes, rows, x)
    begin(modes)
