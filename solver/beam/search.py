"""One beam search over orders of steps and blocks: a step more in each layer, of which the best nodes stay."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.beam.children import DELAY, MATE, STEP, Children, expand
from solver.beam.completion import CompletionBounds, rank_below
from solver.beam.nodes import at_first, offsets
from solver.beam.ranks import SUMS, Preference
from solver.beam.tables import Numbers, Walks

# Rows for children that one call of compiled code fills, which nothing can interrupt.
_AT_ONCE = 4_000


class Found(NamedTuple):
    """The longest time of a device, and the moves: a step, the gradient in a block with it or -1, and its delay."""

    value: int
    moves: list[tuple[int, int, int]]


class _Kept(NamedTuple):
    """Nodes of a layer, or what leads to it: of each the layer of its parent, that one's number and the move."""

    nodes: Numbers
    keys: Numbers
    ranks: NDArray[np.float64]
    layers: Numbers
    parents: Numbers
    moves: Numbers


def best_order(
    walks: Walks, prefers: Preference, width: int, alike: int, below: CompletionBounds | None = None
) -> Generator[None, None, Found | None]:
    """The best order found with `width` nodes per layer, at most `alike` of which have run the same passes.

    None if every node of a layer is at an end or, with completion bounds, cannot end before a value. Yields after each
    call of compiled code, a hundredth of a second or less.
    """
    layers = int(walks.microbatches.sum())
    _, free, waiting, _, size = offsets(walks)
    start = at_first(walks)[np.newaxis]
    none = np.zeros(1, np.int64)
    coming: list[list[_Kept]] = [[] for _ in range(layers + 3)]
    coming[0].append(_Kept(start, none, none.astype(np.float64), none, none, np.zeros((1, 3), np.int64)))
    history: list[_Kept | None] = []
    room = _room(walks, size)
    for done in range(layers):
        layer = _best(coming[done], width, alike)
        coming[done] = []
        history.append(None if layer is None else layer._replace(nodes=none, keys=none, ranks=np.zeros(0)))
        if layer is None:
            continue
        for children in _children(layer.nodes, walks, prefers, room):
            if below is not None:
                rank_below(children.nodes, children.moves, children.ranks, done, walks, below)
            for further in (1, 2):
                chosen = ((children.moves[:, MATE] >= 0) == (further == 2)) & (children.ranks < np.inf)
                coming[done + further].append(_taken(children, chosen, done))
            yield
    last = _best(coming[layers], width, alike)
    if last is None:
        return None
    ends_of = last.nodes[:, free:waiting].copy()
    for step in walks.waits:
        ends_of[:, walks.device[step]] += last.nodes[:, waiting + step] * walks.weight[step]
    values = (ends_of - walks.opens).max(axis=1)
    return Found(int(values.min()), _traced([*history, last], int(values.argmin())))


def ended(run: Generator[None, None, Found | None]) -> Found | None:
    """The result of a run, computed without pause."""
    while True:
        try:
            next(run)
        except StopIteration as end:
            found: Found | None = end.value
            return found


class _Room(NamedTuple):
    """Arrays that calls of compiled code share: a node, the moves from one, sums by device, and children."""

    scratch: Numbers
    moves: Numbers
    sums: NDArray[np.float64]
    children: Children


def _room(walks: Walks, size: int) -> _Room:
    steps = len(walks.device)
    moves = np.zeros((steps * (steps + 2), 5), np.int64)
    rows = max(_AT_ONCE, 2 * len(moves))
    keys = np.zeros(rows, np.int64)
    children = Children(
        np.zeros((rows, size), np.int64), keys, np.zeros(rows), keys.copy(), np.zeros((rows, 3), np.int64)
    )
    return _Room(np.zeros(size, np.int64), moves, np.zeros((SUMS, len(walks.room))), children)


def _children(nodes: Numbers, walks: Walks, prefers: Preference, room: _Room) -> Iterator[Children]:
    """The children of a layer, in parts, each good until the next."""
    since = 0
    out = room.children
    while since < len(nodes):
        found, since = expand(nodes, since, walks, prefers, *room)
        yield Children(out.nodes[:found], out.keys[:found], out.ranks[:found], out.parents[:found], out.moves[:found])


def _taken(children: Children, chosen: NDArray[np.bool_], layer: int) -> _Kept:
    keys = children.keys[chosen]
    layers, parents, moves = np.full(len(keys), layer), children.parents[chosen], children.moves[chosen]
    return _Kept(children.nodes[chosen], keys, children.ranks[chosen], layers, parents, moves)


def _best(parts: list[_Kept], width: int, alike: int) -> _Kept | None:
    """The best nodes, of those that have run the same passes no more than `alike`, and of equal rank one."""
    if not sum(len(part.keys) for part in parts):
        return None
    whole = _Kept(*map(np.concatenate, zip(*parts, strict=True)))
    order = np.lexsort((whole.ranks, whole.keys))
    keys, ranks = whole.keys[order], whole.ranks[order]
    new = np.append(True, keys[1:] != keys[:-1])
    place = np.arange(len(order)) - np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    again = np.append(False, (ranks[1:] == ranks[:-1]) & ~new[1:])
    stay = order[(place < alike) & ~again]
    if len(stay) > width:
        stay = stay[np.argsort(whole.ranks[stay], kind="stable")[:width]]
    return _Kept(*(column[stay] for column in whole))


def _traced(history: list[_Kept | None], node: int) -> list[tuple[int, int, int]]:
    """The moves that lead to a node of the last layer."""
    found, layer = [], len(history) - 1
    while layer > 0:
        kept = history[layer]
        assert kept is not None
        move = kept.moves[node]
        found.append((int(move[STEP]), int(move[MATE]), int(move[DELAY])))
        layer, node = int(kept.layers[node]), int(kept.parents[node])
    return found[::-1]
