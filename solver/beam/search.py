"""Beam search over orders of steps and blocks: each layer adds a step, and only its best nodes are kept."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.quantities import Ticks
from solver.beam.children import DELAY, MATE, STEP, expand
from solver.beam.children import Children as Rows
from solver.beam.completion import CompletionBounds, rank_by_completion
from solver.beam.nodes import at_first, offsets
from solver.beam.ranks import SUMS, Preference
from solver.beam.tables import Numbers, StepTables
from solver.diagram.compile import Progress, compilation
from solver.diagram.model import Arcs, Children, ReducedLayer
from solver.diagram.steps import StepId

# Rows for children that one call of compiled code fills, which nothing can interrupt.
_AT_ONCE = 4_000


class BeamOrder(NamedTuple):
    """The best order found by a beam search, as its moves.

    `value` is the longest time of a device, in ticks from its opening to its end, weight passes included. A move is
    (step, gradient in a block with it or -1, delay); the delay is 1 if a pending weight pass runs first though neither
    time nor memory requires it.
    """

    value: Ticks
    moves: list[tuple[StepId, StepId, int]]


class _Nodes(NamedTuple):
    """Nodes of a layer as arrays with a row for each: the node itself and the hash (`keys`) of the steps it has run.

    Then its rank (`ranks`), lower being better, the layer and the index there of its parent (`layers`, `parents`), and
    the move from it (step, gradient in a block with it or -1, delay of weight passes).
    """

    nodes: Numbers
    keys: Numbers
    ranks: NDArray[np.float64]
    layers: Numbers
    parents: Numbers
    moves: Numbers

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.nodes)


class _BlockOrders:
    """Decision-diagram model of orders of steps and blocks; a block leads two layers further.

    The diagram is restricted: the worst nodes of a layer are dropped, so that `width` remain, at most `alike` of which
    have run the same passes. `prefers` ranks them; `bounds` prunes more, None does not.
    """

    def __init__(
        self, tables: StepTables, prefers: Preference, width: int, alike: int, bounds: CompletionBounds | None
    ) -> None:
        self._tables, self._prefers, self._width, self._alike, self._bounds = tables, prefers, width, alike, bounds
        self._layers = int(tables.microbatches.sum())
        none = np.zeros(1, np.int64)
        start = at_first(tables)[np.newaxis]
        self.root = _Nodes(start, none, none.astype(np.float64), none, none, np.zeros((1, 3), np.int64))
        self._none = self.root._replace(nodes=start[:0])
        self._room = _room(tables, start.shape[1])

    def expanded(self, layer: _Nodes, done: int) -> Iterator[Children]:
        """Yield children in parts that one call of compiled code fills.

        For the last layer, the best value of its nodes. `done` is the number of steps taken before the layer.
        """
        if done == self._layers:
            values = self._values(layer.nodes)
            yield Children((), layer.size, int(values.min()), (int(values.argmin()), None))
            return
        for children in _children(layer.nodes, self._tables, self._prefers, self._room):
            if self._bounds is not None:
                rank_by_completion(children.nodes, children.moves, children.ranks, done, self._tables, self._bounds)
            stay, blocks = children.ranks < np.inf, children.moves[:, MATE] >= 0
            ahead = [_taken(children, chosen & stay, done) for chosen in (~blocks, blocks)]
            yield Children(ahead, len(children.keys))

    def reduced(self, parts: Sequence[_Nodes], done: int) -> ReducedLayer:  # noqa: ARG002 - as a model is asked
        """Return the layer after `done` steps: the nodes of lowest rank among the layer's `parts`, at most `width`.

        At most `alike` nodes that have run the same passes stay; of several with the same passes and the same rank only
        one stays.
        """
        if not parts:
            return ReducedLayer(self._none)
        best = _best(parts, self._width, self._alike)
        return ReducedLayer(best, arcs=Arcs(best.layers, best.parents, best.moves))

    def _values(self, nodes: Numbers) -> Numbers:
        """Return for each complete node the longest time of a device from its opening, in ticks.

        Pending weight passes are included.
        """
        tables = self._tables
        _, free, waiting, _, _ = offsets(tables)
        ends_of = nodes[:, free:waiting].copy()
        for step in tables.waits:
            ends_of[:, tables.device[step]] += nodes[:, waiting + step] * tables.weight[step]
        values: Numbers = (ends_of - tables.opens).max(axis=1)
        return values


def best_order(
    tables: StepTables, prefers: Preference, width: int, alike: int, bounds: CompletionBounds | None = None
) -> Generator[Progress, None, BeamOrder | None]:
    """Search for the best order with `width` nodes per layer, at most `alike` of which have run the same passes.

    Returns None if every node of a layer is a dead end or, with completion bounds, cannot end before the cutoff. Yields
    its progress after each call of compiled code, every hundredth of a second or sooner.
    """
    found = yield from compilation(_BlockOrders(tables, prefers, width, alike, bounds))
    if found.value is None:
        return None
    return BeamOrder(found.value, [(int(move[STEP]), int(move[MATE]), int(move[DELAY])) for move in found.moves])


def ended(run: Generator[Progress, None, BeamOrder | None]) -> BeamOrder | None:
    """Run the generator of `best_order` to its end and return its result.

    None if no order was found.
    """
    while True:
        try:
            next(run)
        except StopIteration as end:
            found: BeamOrder | None = end.value
            return found


class _Room(NamedTuple):
    """Working arrays of the compiled code: a node, the moves from one, sums by device, and children."""

    scratch: Numbers
    moves: Numbers
    sums: NDArray[np.float64]
    children: Rows


def _room(tables: StepTables, size: int) -> _Room:
    steps = len(tables.device)
    moves = np.zeros((steps * (steps + 2), 5), np.int64)
    rows = max(_AT_ONCE, 2 * len(moves))
    keys = np.zeros(rows, np.int64)
    children = Rows(np.zeros((rows, size), np.int64), keys, np.zeros(rows), keys.copy(), np.zeros((rows, 3), np.int64))
    return _Room(np.zeros(size, np.int64), moves, np.zeros((SUMS, len(tables.room))), children)


def _children(nodes: Numbers, tables: StepTables, prefers: Preference, room: _Room) -> Iterator[Rows]:
    """Yield the children of a layer's nodes in parts, each valid until the next.

    Parts share the arrays of `room`.
    """
    since = 0
    out = room.children
    while since < len(nodes):
        found, since = expand(nodes, since, tables, prefers, *room)
        yield Rows(out.nodes[:found], out.keys[:found], out.ranks[:found], out.parents[:found], out.moves[:found])


def _taken(children: Rows, chosen: NDArray[np.bool_], layer: int) -> _Nodes:
    keys = children.keys[chosen]
    layers, parents, moves = np.full(len(keys), layer), children.parents[chosen], children.moves[chosen]
    return _Nodes(children.nodes[chosen], keys, children.ranks[chosen], layers, parents, moves)


def _best(parts: Sequence[_Nodes], width: int, alike: int) -> _Nodes:
    whole = _Nodes(*map(np.concatenate, zip(*parts, strict=True)))
    order = np.lexsort((whole.ranks, whole.keys))
    keys, ranks = whole.keys[order], whole.ranks[order]
    new = np.append(True, keys[1:] != keys[:-1])
    place = np.arange(len(order)) - np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    again = np.append(False, (ranks[1:] == ranks[:-1]) & ~new[1:])
    stay = order[(place < alike) & ~again]
    if len(stay) > width:
        stay = stay[np.argsort(whole.ranks[stay], kind="stable")[:width]]
    return _Nodes(*(column[stay] for column in whole))
