"""The model of a decision diagram: its root, the expansion of a layer, and the nodes of a layer that stay.

After ddo's model and relaxation (Gillard, Schaus, Coppé, 2020). A layer is what the model computes with fastest: arrays
for compiled code, or a dictionary. So a model expands whole layers, and prunes within the expansion what a cutoff or a
completion bound excludes; the compiler sees numbers of nodes, values and arcs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np


class Nodes(Protocol):
    """Nodes of a layer, before any is pruned."""

    @property
    def size(self) -> int:
        """Number of nodes."""


class Children(NamedTuple):
    """Nodes reached by one move from part of a layer: `ahead[n]` are n + 1 layers further.

    `looked` is the work that this took. Of the complete solutions among the children, which have no node, `value` is
    the least value, and `last` the number of the node in the layer and the move that lead to it, if solutions are read
    off. A node of the layer may be complete by itself: then the move is None.
    """

    ahead: Sequence[Any]
    looked: int
    value: int | None = None
    last: tuple[int, Any] | None = None


class Arcs(NamedTuple):
    """Arcs to the nodes of a layer: by node the layer and the number of its parent, and the move."""

    layers: np.ndarray[Any, np.dtype[np.int64]]
    parents: np.ndarray[Any, np.dtype[Any]]
    moves: np.ndarray[Any, np.dtype[Any]]


class Kept(NamedTuple):
    """A layer of non-dominated nodes, at most as many as the model's width; whether others were merged into these.

    A restricted diagram keeps the `arcs` to them. Beyond this layer, `skipped` ones repeat and are not compiled.
    """

    layer: Any
    merged: bool = False
    arcs: Arcs | None = None
    skipped: int = 0


Made_contra = TypeVar("Made_contra", bound=Nodes, contravariant=True)
Layer = TypeVar("Layer")


class Model(Protocol[Made_contra, Layer]):
    """A dynamic program over layers of nodes, all values of which are to be as small as possible.

    The diagram is exact if nothing is merged or dropped, relaxed if `reduced` merges (its least value is a lower
    bound), restricted if it drops (its solutions are feasible).
    """

    @property
    def root(self) -> Layer:
        """The layer before the first move."""

    def expanded(self, layer: Layer, done: int) -> Iterator[Children]:
        """The children of a layer that `done` layers precede, part by part: work can be stopped between any two."""

    def reduced(self, parts: Sequence[Made_contra], done: int) -> Kept:
        """The layer made of these nodes: dominated ones pruned, and merged or dropped beyond the width.

        `parts` is empty where moves that skip a layer alone go on.
        """
