"""The interface of models that the replay of a decision diagram works on: states, successors, and times of labels.

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
    """All states after a number of moves: the state with key `keys[n]` has the labels `labels[at[n]:at[n + 1]]`.

    The keys are integers in ascending order. A label is a row of times in ticks; rows end with zeros.
    """

    keys: Numbers
    at: Numbers
    labels: Labels


class Reached(NamedTuple):
    """Labels reached by one move, before any is pruned: row `labels[n]`, times in ticks, has the state `keys[n]`."""

    keys: Numbers
    labels: Labels


class Successors(NamedTuple):
    """Labels after the moves of some labels: `ahead[n]` has those n + 1 layers further.

    `tried` is the number of labels tried. `end` is the least end, in ticks, of the orders that these moves complete;
    None if they complete none.
    """

    ahead: Sequence[Reached]
    tried: int
    end: int | None = None


class Model(Protocol):
    """A model of the orders of some passes, layer by layer: a move leads to the next layer, or to one further on.

    The check gives up after it has tried `most` labels.
    """

    most: int

    @property
    def root(self) -> Layer:
        """Return the layer that has only the state before the first move."""

    def successors(self, layer: Layer, done: int, threshold: int) -> Iterator[Successors]:
        """Yield the labels after all moves of a layer's labels, in groups; `done` is the number of layers before it.

        Orders that end at `threshold` ticks or later may be omitted.
        """

    def admitted(self, found: Layer, order: Numbers, done: int, threshold: int) -> Labels | None:
        """Return by row of `found.labels` True if completion bounds admit it; None if the model has no such bounds.

        The labels in `found` are unsorted: those of state n are rows `order[found.at[n]:found.at[n + 1]]`. `done` is
        the number of layers before, `threshold` the ticks before which orders have to end.
        """

    def repeated(self, layer: Layer, done: int) -> tuple[Layer, int]:
        """Return the layer to go on with, and the number of layers skipped because they only repeat earlier ones.

        `done` is the number of layers before this one.
        """
