"""The model of a decision diagram as the check replays it: states, their successors, and the times of labels.

Labels are rows of times of partial orders. Transitions are monotone: a label that is nowhere earlier leads to no
earlier end. So dominance, and the merging of labels to the earliest of each time, are the same for all models
(`replay.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Labels = np.ndarray[Any, np.dtype[Any]]


class Layer(NamedTuple):
    """The keys of states, sorted, and the labels of each: `labels[at[n]:at[n + 1]]`. Rows end with zeros."""

    keys: Numbers
    at: Numbers
    labels: Labels


class Reached(NamedTuple):
    """Labels reached by one move, each with the key of its state, before any is pruned."""

    keys: Numbers
    labels: Labels


class Successors(NamedTuple):
    """The labels after the moves of some labels: `ahead[n]` are n + 1 layers further; how many were `tried`.

    `end` is the least end, in ticks, of the orders that are complete then; None if none is.
    """

    ahead: Sequence[Reached]
    tried: int
    end: int | None = None


class Model(Protocol):
    """The orders of some passes, one move a layer; `most` labels are tried before the check gives up."""

    most: int

    @property
    def root(self) -> Layer:
        """The state before the first move."""

    def successors(self, layer: Layer, done: int, below: int) -> Iterator[Successors]:
        """The moves of all labels of a layer after `done` others, part by part.

        Orders that end at `below` or later may be omitted.
        """

    def admitted(self, found: Layer, order: Numbers, done: int, below: int) -> Labels | None:
        """By number of a label whether completion bounds admit it; None where the model has none.

        `found` has the labels unsorted: those of state n are numbers `order[at[n]:at[n + 1]]`.
        """

    def repeated(self, layer: Layer, done: int) -> tuple[Layer, int]:
        """The layer with which to go on, and how many layers before it only repeat earlier ones."""
