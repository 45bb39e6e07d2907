"""Moves that change modes, compiled: fuse or split a backward; form, dissolve or change an overlapped block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipesched.compiled import inlined, inner
from solver.local_search.arrays import Array, Modes, Rows, Shop
from solver.local_search.mode_edits import carry, cut, fuse, join, split
from solver.local_search.modes import BACKWARD, FORWARD, FREE, FUSED, OTHER, ROLE, WEIGHT
from solver.local_search.moves import distance
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class ModeMoveParams:
    """Shares of the kinds of random changes of modes.

    `critical` is the share of changes that begin at an operation of the critical path; the others begin at any
    operation. The other two parameters divide the changes that dissolve a block into cases that exclude each other. In
    a share of `paired_again` the forward is joined to another backward, if one is near; in an equal share the backward
    to another forward; in a share of `carried` one of the two moves to another place in the order. In the remaining
    cases both stay where they are.
    """

    critical: float = tuned(0.7, "of changes, on the critical path; the others anywhere", 0, 1)
    paired_again: float = tuned(0.35, "of dissolved blocks, for each of the two passes: joined to another one", 0, 0.5)
    carried: float = tuned(0.15, "of dissolved blocks, one of whose passes moves away", 0, 1)


_PARAMS = ModeMoveParams()
_CRITICAL, _FORWARD_PAIRED = _PARAMS.critical, _PARAMS.paired_again
_BACKWARD_PAIRED = 2 * _PARAMS.paired_again
_CARRIED = _BACKWARD_PAIRED + _PARAMS.carried


@inlined
def change_mode(shop: Shop, modes: Modes, rows: Rows, path: Array, critical: int, reach: int) -> int:
    """Change the mode of one random operation, mostly on the critical path; return its device.

    A weight pass is fused with its backward, a block dissolved, a forward or backward joined to a block, a backward
    fused or split. `modes.log` has the edits; it stays empty if the drawn operation allows no change. `critical` is the
    length of `path`; partners are less than twice `reach` places away.
    """
    node = np.random.randint(shop.ticks.shape[0])
    if critical > 0 and np.random.random() < _CRITICAL:
        node = path[np.random.randint(critical)]
    d, k = shop.device[node], rows.place[node]
    if k < 0:
        return d
    if modes.of[node, ROLE] == WEIGHT:
        if modes.of[modes.of[node, OTHER], FREE]:
            fuse(shop, modes, rows, modes.of[node, OTHER])
    elif modes.mate[node] >= 0:
        _dissolve(shop, modes, rows, d, node, reach)
    elif modes.of[node, ROLE] == FORWARD or not modes.of[node, FREE] or np.random.random() < 0.5:
        _pair(shop, modes, rows, d, node, -1, reach)
    elif not modes.of[node, FUSED]:
        fuse(shop, modes, rows, node)
    else:
        # Its weight pass is put directly after it, or further on.
        far = 1 if np.random.random() < 0.5 else distance(shop.ticks.shape[0])
        split(shop, modes, rows, node, min(rows.count[d], k + far))
    return d


@inner
def _dissolve(shop: Shop, modes: Modes, rows: Rows, d: int, b: int, reach: int) -> None:
    """Separate the block of backward `b`; then mostly join one of its passes to another partner, or move one away.

    All on device `d`. Partners are less than twice `reach` places away, new places at most `reach`.
    """
    forward_first = np.random.randint(2)
    f = modes.mate[b]
    cut(shop, modes, rows, d, rows.place[b], forward_first)
    draw = np.random.random()
    if draw < _BACKWARD_PAIRED:
        one, other = (f, b) if draw < _FORWARD_PAIRED else (b, f)
        _pair(shop, modes, rows, d, one, other, reach)
    elif draw < _CARRIED:
        # What comes first goes forward, or what comes second goes back.
        k = min(rows.place[f], rows.place[b])
        far = np.random.randint(1, reach + 1)
        earlier = np.random.random() < 0.5
        target = max(0, k - far) if earlier else min(rows.count[d] - 1, k + 1 + far)
        carry(shop, modes, rows, d, k if earlier else k + 1, target)


@inner
def _pair(shop: Shop, modes: Modes, rows: Rows, d: int, node: int, but: int, reach: int) -> None:
    """Join a forward or backward, `node`, to a nearby unpaired partner other than `but`, if their block saves time.

    The next `reach` places are searched from a random distance of 1 to `reach` on, either before or after it in the
    order of device `d`, and the first partner found counts; nothing is done if there is none. `but` is -1 if any may be
    it.
    """
    step = 1 if np.random.random() < 0.5 else -1
    k = rows.place[node]
    first = np.random.randint(1, reach + 1)
    for far in range(first, first + reach):
        at = k + step * far
        if at < 0 or at >= rows.count[d]:
            return
        mate = rows.order[d, at]
        f, b = (node, mate) if modes.of[node, ROLE] == FORWARD else (mate, node)
        if mate == but or modes.of[f, ROLE] != FORWARD or modes.of[b, ROLE] != BACKWARD or modes.mate[b] >= 0:
            continue
        if modes.gains[shop.line[f], shop.line[b]]:
            _bring_together(shop, modes, rows, d, f, b)
            return


@inner
def _bring_together(shop: Shop, modes: Modes, rows: Rows, d: int, f: int, b: int) -> None:
    """Move forward `f` next to backward `b`, or `b` next to `f`, in the order of device `d`, and make them a block.

    A split backward is fused first. If the move meets another pass of the same line, that one moves on in its place,
    and the block is made with it. No block is made if the move stops earlier, or if a backward met so is split.
    """
    if not modes.of[b, FUSED]:
        fuse(shop, modes, rows, b)
    one, other = (f, b) if np.random.random() < 0.5 else (b, f)
    source, other_place = rows.place[one], rows.place[other]
    target = other_place - 1 if source < other_place else other_place + 1
    if source != target:
        reached = carry(shop, modes, rows, d, source, target)
        if reached != target:
            return
    k = min(target, other_place)
    f, b = rows.order[d, k], rows.order[d, k + 1]
    if modes.of[f, ROLE] != FORWARD:
        f, b = b, f
    if not modes.of[b, FUSED]:
        return  # another backward of the line came here instead
    join(shop, modes, rows, d, k)
