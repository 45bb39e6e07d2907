"""Layers of a decision diagram: states with their labels, in parts that one call of compiled code takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.quantities import Ticks
from solver.diagram.steps import Numbers, Steps


class Layer(NamedTuple):
    """A layer of states.

    The state with key `keys[n]` has the labels `labels[first[n]:first[n + 1]]`; the keys are sorted. A label is a row
    of times in ticks (see `solver.diagram.transitions`).
    """

    keys: Numbers
    first: Numbers
    labels: Numbers

    def least(self) -> Labels:
        """Return one label for each state, with the minimum of every time over the labels of the state."""
        if not len(self.keys):
            return Labels(self.keys, self.labels)
        return Labels(self.keys, np.minimum.reduceat(self.labels, self.first[:-1], axis=0))


class Labels(NamedTuple):
    """Labels as rows of times in ticks, and for each the key of its state; several labels may have the same key."""

    keys: Numbers
    labels: Numbers

    @property
    def size(self) -> int:
        """Number of labels."""
        return len(self.keys)

    def where(self, chosen: NDArray[np.bool_]) -> Labels:
        """Return the labels at which the boolean mask `chosen` is True."""
        return Labels(self.keys[chosen], self.labels[chosen])


class Least(NamedTuple):
    """Result of a diagram: the least `ticks` from the first step to the end of the objective.

    With a threshold, at most the threshold, which they are if no order ends sooner. None if the diagram was not
    finished, by a limit or a stop, or, without a threshold, if no order ends. `work`: labels looked at. `merged`: True
    if labels were merged, so that a greater width might prove more.
    """

    ticks: Ticks | None
    work: int
    merged: bool


def first_layer(steps: Steps, kind: type[np.signedinteger]) -> Layer:
    """Return the layer before the first step: one state with one label, its times in integers of type `kind`."""
    label = np.zeros((1, steps.slots + 2 * len(steps.room)), kind)
    label[:, steps.slots :] = steps.past
    return Layer(np.zeros(1, np.int64), np.array([0, 1], np.int64), label)


def slices(first: Numbers, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (since, until) of consecutive states with at most `most` labels each, or of one state with more.

    State n has the labels from index `first[n]` up to, not including, `first[n + 1]`.
    """
    since = 0
    while since < len(first) - 1:
        until = max(since + 1, int(np.searchsorted(first, first[since] + most, side="right")) - 1)
        yield since, until
        since = until


def joined(parts: Sequence[Labels]) -> Labels:
    """Return the labels of these parts, one part after the other, as one."""
    keys, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Labels(keys, labels)
