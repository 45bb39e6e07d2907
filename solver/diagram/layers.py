"""States of a layer with their labels, in parts that one call of compiled code takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.diagram.steps import Numbers, Steps


class Layer(NamedTuple):
    """States by key, with their labels: `labels[first[n]:first[n + 1]]` are those of state n."""

    keys: Numbers
    first: Numbers
    labels: Numbers

    def least(self) -> Labels:
        """The states, with the least of every time."""
        if not len(self.keys):
            return Labels(self.keys, self.labels)
        return Labels(self.keys, np.minimum.reduceat(self.labels, self.first[:-1], axis=0))


class Labels(NamedTuple):
    """Keys of states, each with a label."""

    keys: Numbers
    labels: Numbers

    @property
    def size(self) -> int:
        """Number of labels."""
        return len(self.keys)

    def where(self, chosen: NDArray[np.bool_]) -> Labels:
        """Some of them."""
        return Labels(self.keys[chosen], self.labels[chosen])


class Least(NamedTuple):
    """The least ticks from the first step to the end of what counts, None where that is too much work.

    Of orders that are followed below a value only, the value if that is less. How many labels were looked at; and
    whether labels were merged, so that more of them might prove more.
    """

    ticks: int | None
    work: int
    merged: bool


def first_layer(steps: Steps, kind: type[np.signedinteger]) -> Layer:
    """The label before the first step, with numbers of this kind."""
    label = np.zeros((1, steps.slots + 2 * len(steps.room)), kind)
    label[:, steps.slots :] = steps.past
    return Layer(np.zeros(1, np.int64), np.array([0, 1], np.int64), label)


def slices(first: Numbers, most: int) -> Iterator[tuple[int, int]]:
    """Consecutive states with about so many labels at once, one state at least."""
    since = 0
    while since < len(first) - 1:
        until = max(since + 1, int(np.searchsorted(first, first[since] + most, side="right")) - 1)
        yield since, until
        since = until


def joined(parts: Sequence[Labels]) -> Labels:
    """All labels of these parts."""
    keys, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Labels(keys, labels)
