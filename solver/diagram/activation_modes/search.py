"""All orders of a relaxation that may end before a threshold, state by state; few enough under tight memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from threading import Event

from solver.diagram.activation_modes.relaxation import ModeRelaxation
from solver.diagram.activation_modes.states import Label, Move, State, States
from solver.diagram.layers import Least


def least_end(holding: ModeRelaxation, below: int, work: int, stop: Event) -> Least:
    """The least end of orders that end below the value, or that; None where that takes more than so many labels."""
    states, least, looked = States(holding), below, 0
    state, label = states.first
    layers: list[dict[State, list[Label]]] = [{} for _ in range(states.last_rank + 1)]
    layers[0][state] = [label]
    for rank in range(states.last_rank):
        for state, found in layers[rank].items():
            labels = earliest(found)
            looked += len(found)
            if looked > work or stop.is_set():
                return Least(None, looked, False)
            for move in states.moves(state, labels[0].queues):
                left, own = states.left(move.state), list[Label]()
                for one in labels:
                    start = _start(one, move)
                    new = _after(one, move, start)
                    end = max(_end(holding, new, left), 0 if move.ends is None else start + move.ticks + move.ends)
                    if end < below:
                        own.append(new)
                        least = min(least, end) if states.rank(move.state) == states.last_rank else least
                if own:
                    layers[states.rank(move.state)].setdefault(move.state, []).extend(own)
        layers[rank].clear()
    return Least(least, looked, False)


def earliest(labels: Iterable[Label]) -> list[Label]:
    """The non-dominated labels."""
    rows = sorted({tuple(chain(one.free, one.over, *one.queues)): one for one in labels}.items(), key=_sum)
    kept = list[tuple[tuple[int, ...], Label]]()
    for row, label in rows:
        if not any(all(x <= y for x, y in zip(other, row, strict=True)) for other, _ in kept):
            kept.append((row, label))
    return [label for _, label in kept]


def _sum(row: tuple[tuple[int, ...], Label]) -> int:
    return sum(row[0])


def _start(label: Label, move: Move) -> int:
    """Earliest start of a move."""
    start = move.since if move.stream is None else max(move.since, label.free[move.stream])
    if move.behind:
        start = max(start, label.free[move.device])
    if move.slack is not None and not move.beside:
        start = max(start, label.over[move.device] - move.slack)
    for queue in move.takes:
        start = max(start, label.queues[queue][0])
    return start if move.after is None else max(start, label.queues[move.after[0]][move.after[1]])


def _after(label: Label, move: Move, start: int) -> Label:
    """Moves are taken in the order of their starts, so that no other one starts before."""
    end = start + move.ticks
    free = [end if n == move.stream else max(time, start) for n, time in enumerate(label.free)]
    if move.slack is not None and move.beside:
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


def _end(holding: ModeRelaxation, label: Label, left: Sequence[tuple[int, int]]) -> int:
    """A lower bound on the end of the objective's devices, including their work up to the last gradient."""
    found = 0
    for n, (device, (until, weights)) in enumerate(zip(holding.devices, left, strict=True)):
        if device.counts:
            found = max(found, label.over[n] + until + weights)
        if device.counts and until:  # its tail; a device that is through may have begun it
            found = max(found, label.free[n] + until + device.tail)
    return found
