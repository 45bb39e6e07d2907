"""Compiler of decision diagrams, layer by layer, for any model: exact, relaxed or restricted."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from threading import Event
from typing import Any, NamedTuple, TypeVar

from solver.diagram.model import Arcs, Layer, Model, Nodes, ReducedLayer

Made = TypeVar("Made", bound=Nodes)


class Progress(NamedTuple):
    """Work so far (nodes, here called labels, looked at), and the number of children of the current layer so far."""

    looked: int
    children: int


class Outcome(NamedTuple):
    """Result of a compiled diagram.

    `value`: the least value of a complete solution; None if none is left. `looked`: the work, in labels looked at;
    `merged`: True if nodes were merged. `moves`: those of the best solution, for a restricted diagram, else empty. If
    not `finished`, the value proves nothing.
    """

    value: int | None
    looked: int
    merged: bool
    moves: list[Any]
    finished: bool = True


def compilation(model: Model[Made, Layer]) -> Generator[Progress, None, Outcome]:
    """Compile the diagram of a model, as a generator that yields its progress after each part of a layer.

    Its result, the value of `StopIteration`, is the outcome, which is finished.
    """
    kept, done, looked, merged = ReducedLayer(model.root), 0, 0, False
    ahead, history = deque[list[Made]](), list[Arcs | None]()
    value: int | None = None
    last: tuple[int, Any] | None = None
    while True:
        history.append(kept.arcs)
        merged, size = merged or kept.merged, 0
        for children in model.expanded(kept.layer, done):
            looked += children.looked
            for further, nodes in enumerate(children.ahead):
                while len(ahead) <= further:
                    ahead.append([])
                if nodes.size:
                    ahead[further].append(nodes)
                    size += nodes.size
            if children.value is not None and (value is None or children.value < value):
                value, last = children.value, children.last
                end = len(history) - 1
            yield Progress(looked, size)
        if not any(ahead):
            return Outcome(value, looked, merged, [] if last is None else _path(history, end, *last))
        done += 1
        kept = model.reduced(ahead.popleft(), done)
        done += kept.skipped


def compiled_within(
    model: Model[Made, Layer], stop: Event, most_looked: int | None = None, most_children: int | None = None
) -> Outcome:
    """Return the outcome of a diagram. It is unfinished if `stop` is set, or if a limit is exceeded.

    Its value is None then. The limits are `most_looked` labels looked at in all, and `most_children` children of one
    layer; None is no limit.
    """
    run = compilation(model)
    while True:
        try:
            looked, children = next(run)
        except StopIteration as end:
            found: Outcome = end.value
            return found
        over = (most_looked is not None and looked > most_looked) or (
            most_children is not None and children > most_children
        )
        if over or stop.is_set():
            return Outcome(None, looked, True, [], finished=False)


def _path(history: Sequence[Arcs | None], layer: int, node: int, move: Any) -> list[Any]:
    """Return the moves from the root to the node with this index in a layer, followed by `move` unless that is None.

    `history` has the arcs of each layer up to that one.
    """
    found = [] if move is None else [move]
    while layer > 0:
        arcs = history[layer]
        assert arcs is not None
        found.append(arcs.moves[node])
        layer, node = int(arcs.layers[node]), int(arcs.parents[node])
    return found[::-1]
