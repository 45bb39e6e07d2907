"""Adapter for models in plain Python, which work state by state.

The replay gets numbered states and arrays of labels.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from pipesched.checking.diagram.model import Labels, Layer, Numbers, Reached, Successors
from pipesched.deadline import asking
from pipesched.int64_arrays import int64_array
from pipesched.problem.quantities import Ticks

Label = tuple[int, ...]
State = TypeVar("State", bound=Hashable)
# Times up to which arrays have 32 bits; labels turned into arrays at once.
_SHORT, _AT_ONCE = 2**29, 100_000


class StateModel(Protocol[State]):
    """A model of orders whose states are plain Python values. All labels of a state have the same number of times.

    `first` is the state before all steps, `last` the one after all.
    """

    first: State
    last: State

    def begin(self) -> Label:
        """Return the label (the times) before the first move."""

    def layer_of(self, state: State) -> int:
        """Return the number of the layer of a state, which every move raises by at least 1."""

    def children(self, state: State, labels: Sequence[Label], threshold: Ticks) -> Iterator[tuple[State, Label, Ticks]]:
        """Yield the state and label after each move, and the least end of any completion, if before the `threshold`.

        Rows of `labels` may have additional zeros at their end.
        """


class ByState(Generic[State]):
    """A `StateModel` as a `Model` of the replay, without completion bounds or repetition.

    The key of a state is a number, given when it is first reached. A layer can be expanded only once: the numbers of
    its states are forgotten then. The check gives up after `most` labels.
    """

    most = 3_000_000

    def __init__(self, model: StateModel[State]) -> None:
        self._model = model
        # The numbers given to states that have not been expanded.
        self._numbers, self._states, self._given = {model.first: 0}, {0: model.first}, 1
        self.root = Layer(np.zeros(1, np.int64), np.array([0, 1]), _rows([model.begin()]))

    def successors(self, layer: Layer, done: int, threshold: Ticks) -> Iterator[Successors]:
        """Yield the labels reached from a layer by all moves, in groups of many labels.

        Those of orders that end at `threshold` ticks or later are left out. `done` is the number of the layer.
        """
        ahead, tried, end = dict[int, tuple[list[int], list[Label]]](), 0, None
        rows = list(map(tuple, layer.labels.tolist()))
        at = layer.at.tolist()
        for key, since, until in asking(zip(layer.keys.tolist(), at[:-1], at[1:], strict=True)):
            state = self._states.pop(key)
            del self._numbers[state]
            for after, label, least in self._model.children(state, rows[since:until], threshold):
                tried += 1
                if after == self._model.last:
                    end = least if end is None else min(end, least)
                    continue
                keys, labels = ahead.setdefault(self._model.layer_of(after) - done - 1, ([], []))
                keys.append(self._number(after))
                labels.append(label)
            if tried >= _AT_ONCE:
                yield Successors(_arrays(ahead), tried, end)
                ahead, tried, end = {}, 0, None
        yield Successors(_arrays(ahead), tried, end)

    def admitted(self, found: Layer, order: Numbers, done: int, threshold: Ticks) -> None:
        """Return None: the model has no completion bounds, since it omits orders that end late by itself.

        The arguments of the interface `Model` are not used.
        """

    def repeated(self, layer: Layer, done: int) -> tuple[Layer, int]:  # noqa: ARG002 - as a model is asked
        """Return the layer unchanged, and 0: no layers are skipped."""
        return layer, 0

    def _number(self, state: State) -> int:
        number = self._numbers.get(state)
        if number is None:
            number, self._given = self._given, self._given + 1
            self._numbers[state], self._states[number] = number, state
        return number


def _arrays(ahead: dict[int, tuple[list[int], list[Label]]]) -> list[Reached]:
    """Return the reached labels as arrays, in a list by number of layers skipped.

    `ahead` has by that number the keys of states and their labels; entry 0 is of the next layer, and numbers without
    labels have empty arrays.
    """
    nothing = list[int](), list[Label]()
    columns = [ahead.get(further, nothing) for further in range(1 + max(ahead, default=-1))]
    return [Reached(np.array(keys, np.int64), _rows(labels)) for keys, labels in columns]


def _rows(labels: Sequence[Label]) -> Labels:
    """Return labels as rows of one array; shorter labels end with zeros, and small times have 32 bits."""
    size = max(map(len, labels), default=0)
    rows: Labels = int64_array([label + (0,) * (size - len(label)) for label in labels]).reshape(len(labels), size)
    return rows.astype(np.int32) if not rows.size or rows.max() < _SHORT else rows
