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
    """Nodes reached by one move from part of a layer; `ahead[n]` has those n + 1 layers further.

    `looked` is the work, in nodes looked at. A complete solution among the children has no node: `value` is the least
    value of these solutions and, if solutions are reconstructed, `last` has the index of the node in the layer and the
    move that lead to it. If a node of the layer is complete itself, the move is None.
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

    `merged`: True if other nodes were merged into these. `arcs` has the arcs to the nodes in a restricted diagram, else
    None. `skipped` is the number of layers after this one that repeat it and are not compiled.
    """

    layer: Any
    merged: bool = False
    arcs: Arcs | None = None
    skipped: int = 0


Made_contra = TypeVar("Made_contra", bound=Nodes, contravariant=True)
Layer = TypeVar("Layer")


class Model(Protocol[Made_contra, Layer]):
    """A dynamic program over layers of nodes, in which the value of a solution is minimised.

    If nodes are neither merged nor dropped, the diagram is exact. It is relaxed if `reduced` merges nodes: its least
    value is a lower bound. It is restricted if `reduced` drops nodes: its solutions are feasible.
    """

    @property
    def root(self) -> Layer:
        """The layer before the first move."""

    def expanded(self, layer: Layer, done: int) -> Iterator[Children]:
        """Yield the children of a layer in parts; the work can be stopped between two parts.

        `done` is the number of layers before this one.
        """

    def reduced(self, parts: Sequence[Made_contra], done: int) -> ReducedLayer:
        """Return layer number `done`, made of these nodes.

        Dominated ones are pruned, those beyond the width merged or dropped. `parts` is empty where all nodes that lead
        on are in later layers, by moves that skip this one.
        """
