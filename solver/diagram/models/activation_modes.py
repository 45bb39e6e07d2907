"""Model of an activation-mode relaxation: orders that may end before a threshold; exact, since nothing is merged.

A node is a state with all its non-dominated labels, which are few under tight memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from threading import Event

from pipesched.problem.quantities import Ticks
from solver.diagram.activation_modes.relaxation import ModeRelaxation
from solver.diagram.activation_modes.states import Label, Move, State, States
from solver.diagram.compile import compiled_within
from solver.diagram.layers import Least
from solver.diagram.model import Children, ReducedLayer


class ModeLayer(dict[State, list[Label]]):
    """The states of one rank (`States.rank`), each with its labels."""

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self)


class ActivationModes:
    """Model of the orders of `relaxation` that end before `threshold` ticks; its layers are the ranks of states."""

    def __init__(self, relaxation: ModeRelaxation, threshold: Ticks) -> None:
        self._relaxation, self._threshold, self._states = relaxation, threshold, States(relaxation)
        state, label = self._states.first
        self.root = ModeLayer({state: [label]})

    def expanded(self, layer: ModeLayer, done: int) -> Iterator[Children]:
        """Yield the children of the layer's states, state by state.

        Labels that cannot end before the threshold are left out. `done` is the number of layers before.
        """
        states, threshold = self._states, self._threshold
        for state, labels in layer.items():
            ahead, value, made = list[ModeLayer](), threshold, 0
            for move in states.moves(state, labels[0].queues):
                left, labels_after, rank = states.left(move.state), list[Label](), states.rank(move.state)
                for one in labels:
                    start = _start(one, move)
                    new = _after(one, move, start)
                    ends = 0 if move.ends is None else start + move.ticks + move.ends
                    end = max(_end(self._relaxation, new, left), ends)
                    if end < threshold and rank == states.last_rank:
                        value = min(value, end)
                    elif end < threshold:
                        labels_after.append(new)
                made += len(labels_after)
                if labels_after:
                    while len(ahead) < rank - done:
                        ahead.append(ModeLayer())
                    ahead[rank - done - 1].setdefault(move.state, []).extend(labels_after)
            yield Children(ahead, made, value if value < threshold else None)

    def reduced(self, parts: Sequence[ModeLayer], done: int) -> ReducedLayer:  # noqa: ARG002 - as a model is asked
        """Return the layer with the non-dominated labels of each state; none are merged.

        `parts` are the children of the layer before, `done` is the number of layers before.
        """
        found = ModeLayer()
        for part in parts:
            for state, labels in part.items():
                found.setdefault(state, []).extend(labels)
        for state, labels in found.items():
            found[state] = earliest(labels)
        return ReducedLayer(found)


def least_end(relaxation: ModeRelaxation, threshold: Ticks, work: int, stop: Event) -> Least:
    """Return the least end in ticks of all orders that end before `threshold`, or `threshold` if there are none.

    Its ticks are None if it takes more than `work` labels, or is stopped.
    """
    found = compiled_within(ActivationModes(relaxation, threshold), stop, work)
    if not found.finished:
        return Least(None, found.looked, False)
    return Least(threshold if found.value is None else found.value, found.looked, False)


def earliest(labels: Iterable[Label]) -> list[Label]:
    """Return the labels of one state that no other one dominates, by being nowhere later; of equal ones the last.

    They are in ascending order of the sums of their times.
    """
    rows = sorted({tuple(chain(one.free, one.over, *one.queues)): one for one in labels}.items(), key=_sum)
    kept = list[tuple[tuple[int, ...], Label]]()
    for row, label in rows:
        if not any(all(x <= y for x, y in zip(other, row, strict=True)) for other, _ in kept):
            kept.append((row, label))
    return [label for _, label in kept]


def _sum(row: tuple[tuple[Ticks, ...], Label]) -> Ticks:
    return sum(row[0])


def _start(label: Label, move: Move) -> Ticks:
    """Return the earliest start in ticks of a move from a label."""
    start = move.since if move.stream is None else max(move.since, label.free[move.stream])
    if move.after_last_pass:
        start = max(start, label.free[move.device])
    if move.slack is not None and not move.during_last_pass:
        start = max(start, label.over[move.device] - move.slack)
    for queue in move.takes:
        start = max(start, label.queues[queue][0])
    return start if move.after is None else max(start, label.queues[move.after[0]][move.after[1]])


def _after(label: Label, move: Move, start: Ticks) -> Label:
    """Return the label after a move that starts at `start`; no later move of the order starts before that."""
    end = start + move.ticks
    free = [end if n == move.stream else max(time, start) for n, time in enumerate(label.free)]
    if move.slack is not None and move.during_last_pass:
        free[move.device] = max(free[move.device], label.over[move.device] - move.slack)
    over = tuple(max(time, start) + (move.work if n == move.device else 0) for n, time in enumerate(label.over))
    queues = [tuple(max(time, start) for time in queue) for queue in label.queues]
    for queue in move.takes:
        queues[queue] = queues[queue][1:]
    for queue, more in move.puts:
        queues[queue] = (*queues[queue], end + more)
    if move.after is not None:
        queue, place = move.after
        queues[queue] = (*queues[queue][:place], end, *queues[queue][place + 1 :])
    return Label(tuple(free), over, tuple(queues))


def _end(relaxation: ModeRelaxation, label: Label, left: Sequence[tuple[Ticks, Ticks]]) -> Ticks:
    """Return a lower bound in ticks on the end of any order that continues a label.

    `left` has, for each modelled device, the compute ticks left up to its last gradient pass and those of weight
    passes. Of the devices that count the bound is the latest end of all work, or of the last gradient pass with the
    least time after it.
    """
    found = 0
    for n, (device, (until, weights)) in enumerate(zip(relaxation.devices, left, strict=True)):
        if device.counts:
            found = max(found, label.over[n] + until + weights)
        if device.counts and until:  # its tail; a device that is through may have begun it
            found = max(found, label.free[n] + until + device.tail)
    return found
