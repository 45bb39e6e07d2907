"""States of a layer with their labels, in parts that one call of compiled code takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from solver.diagram.steps import Numbers


class Layer(NamedTuple):
    """States by key, with their labels: `labels[first[n]:first[n + 1]]` are those of state n."""

    keys: Numbers
    first: Numbers
    labels: Numbers


class Labels(NamedTuple):
    """Keys of states, each with a label."""

    keys: Numbers
    labels: Numbers


class Least(NamedTuple):
    """The least ticks from the first step to the end of what counts, None where that is too much work.

    Of orders that are followed below a value only, the value if that is less. How many labels were looked at; and
    whether labels were merged, so that more of them might prove more.
    """

    ticks: int | None
    work: int
    merged: bool


def first_layer(size: int, kind: type[np.signedinteger] = np.int64) -> Layer:
    """The label before the first step, with so many numbers."""
    return Layer(np.zeros(1, np.int64), np.array([0, 1], np.int64), np.zeros((1, size), kind))


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
