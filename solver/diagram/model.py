"""Interface of a decision diagram's model: its root, the expansion of a layer, and the nodes of a layer that stay.

After ddo's model and relaxation (Gillard, Schaus, Coppé, 2020). A layer is in the form with which the model computes
fastest: arrays for compiled code, or a dictionary. So a model expands whole layers, and prunes within the expansion
what a cutoff or a completion bound excludes; the compiler sees numbers of nodes, values and arcs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np


class Nodes(Protocol):
    """Nodes made for a layer, before any is pruned; each model has a container of its own."""

    @property
    def size(self) -> int:
        """Number of nodes."""


class Children(NamedTuple):
    """Nodes reached by one move from part of a layer; `ahead[n]` are those n + 1 layers further, as `Nodes`.

    `looked` is the work, in nodes looked at. Complete solutions among the children have no node: `value` is their least
    value, and `last` the index of the node in the layer and the move that lead to it, if solutions are reconstructed.
    If a node of the layer is complete itself, that move is None.
    """

    ahead: Sequence[Any]
    looked: int
    value: int | None = None
    last: tuple[int, Any] | None = None


class Arcs(NamedTuple):
    """Arcs to the nodes of a layer: arrays with, for each node, the layer and index of its parent, and the move."""

    layers: np.ndarray[Any, np.dtype[np.int64]]
    parents: np.ndarray[Any, np.dtype[Any]]
    moves: np.ndarray[Any, np.dtype[Any]]


class ReducedLayer(NamedTuple):
    """A layer of non-dominated nodes, at most as many as the model's width allows.

    `merged`: True if others were merged into these. A restricted diagram keeps the `arcs` to them, else None. `skipped`
    is the number of layers after this one that repeat and are not compiled.
    """

    layer: Any
    merged: bool = False
    arcs: Arcs | None = None
    skipped: int = 0


Made_contra = TypeVar("Made_contra", bound=Nodes, contravariant=True)
Layer = TypeVar("Layer")


class Model(Protocol[Made_contra, Layer]):
    """A dynamic program over layers of nodes in which all values are to be minimised.

    The diagram is exact if nothing is merged or dropped, relaxed if `reduced` merges (its least value is a lower
    bound), restricted if it drops (its solutions are feasible).
    """

    @property
    def root(self) -> Layer:
        """The layer before the first move."""

    def expanded(self, layer: Layer, done: int) -> Iterator[Children]:
        """Yield the children of a layer in parts, between which the work can be stopped; `done` layers precede the
        layer."""

    def reduced(self, parts: Sequence[Made_contra], done: int) -> ReducedLayer:
        """Return the layer number `done` made of these nodes: dominated ones pruned, those beyond the width merged or
        dropped.

        `parts` is empty where only moves that skip a layer continue.
        """
