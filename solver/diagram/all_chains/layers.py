"""What the labels of a layer become by a step or a block more, compiled; those that must end too late are left out.

A state says how many micro-batches have done each step. A label says how early that can be reached: by chain when the
last step of each micro-batch in flight ended, the oldest first, then for each device when its next step can start at
the earliest, and when it would be free with all weight passes done. Steps are taken in the order of their starts.
"""

from __future__ import annotations

import numpy as np

from pipesched.compiled import compiled
from solver.diagram.all_chains.states import fill_latest, fill_waiting, is_over, moves_of, none_counted
from solver.diagram.all_chains.steps import NONE, ChainSteps
from solver.diagram.layers import Layer
from solver.diagram.steps import Numbers
from solver.diagram.transitions import NEVER


@compiled
def successors_of_chains(
    layer: Layer, since: int, until: int, steps: ChainSteps, value: int
) -> tuple[Numbers, Numbers, Numbers, Numbers, int]:
    """Keys and labels of some states after one step more, then of those after a block; the least value at the end."""
    count, width = len(steps.ticks), layer.labels.shape[1]
    run, after, may = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    moves = np.empty((count * (count + 1), 2), np.int64)
    latest, waiting = np.empty(width, np.int64), np.empty((count, 3), np.int64)
    sizes = np.zeros(2, np.int64)
    for state in range(since, until):
        found = moves_of(layer.keys[state], steps, run, may, moves)
        blocks = (moves[:found, 1] != NONE).sum()
        sizes += (layer.first[state + 1] - layer.first[state]) * np.array([found - blocks, blocks])
    keys, labels = np.empty(sizes[0], np.int64), np.empty((sizes[0], width), np.int64)
    far_keys, far = np.empty(sizes[1], np.int64), np.empty((sizes[1], width), np.int64)
    near, further, ended = 0, 0, np.int64(NEVER)
    for state in range(since, until):
        for move in moves[: moves_of(layer.keys[state], steps, run, may, moves)]:
            step, gradient = move
            after[:] = run
            after[step] += 1
            key = layer.keys[state] + steps.place[step]
            if gradient != NONE:
                after[gradient] += 1
                key += steps.place[gradient]
            uncounted, over = none_counted(run, steps), is_over(after, steps)
            waits = waiting[: fill_waiting(after, steps, waiting)]
            fill_latest(after, steps, value, latest)
            for label in range(layer.first[state], layer.first[state + 1]):
                new = labels[near] if gradient == NONE else far[further]
                new[:] = layer.labels[label]
                end = _advance(new, step, gradient, run, may[step], uncounted, steps)
                if over:
                    whole = new[steps.slots + len(steps.room) :]
                    last = max(whole.max(), np.int64(end)) if steps.counted == NONE else whole[steps.counted]
                    ended = min(ended, last)
                    continue
                if end >= value:
                    continue
                _lift(new, waits, steps)
                if not _in_time(new, latest):
                    continue
                if gradient == NONE:
                    keys[near] = key
                    near += 1
                else:
                    far_keys[further] = key
                    further += 1
    return keys[:near], labels[:near], far_keys[:further], far[:further], int(ended)


@compiled
def _advance(
    label: Numbers, step: int, gradient: int, run: Numbers, pending: int, uncounted: bool, steps: ChainSteps
) -> int:
    """Change a label by a step or a block; when all that its micro-batches still do can end at the earliest."""
    devices, device = len(steps.room), steps.device[step]
    free, whole = steps.slots + device, steps.slots + devices + device
    start = max(label[free], _comes(label, step, run, steps))
    if gradient != NONE:
        start = max(start, _comes(label, gradient, run, steps))
    if pending >= 0:
        start = max(start, label[whole] - pending * steps.longest[device])
    if uncounted:
        if device != steps.counted:
            _ended(label, step, run, steps.origin, steps)
            if gradient != NONE:
                _ended(label, gradient, run, steps.origin, steps)
            return steps.origin
        start = max(start, 0)
    for time in range(steps.slots, len(label)):
        label[time] = max(label[time], start)
    work = steps.ticks[step] if gradient == NONE else steps.blocks[step, gradient]
    label[free] = end = start + work
    label[whole] += work + (steps.later[step] if gradient == NONE else 0)
    _ended(label, step, run, end, steps)
    until = end + steps.after[step]
    if gradient != NONE:
        _ended(label, gradient, run, end, steps)
        until = max(until, end + steps.after[gradient])
    return int(until)


@compiled
def _comes(label: Numbers, step: int, run: Numbers, steps: ChainSteps) -> int:
    """When the next micro-batch can take a step, but for its device."""
    if steps.before[step] == NONE:
        return steps.origin + int(steps.lag[step])
    return int(label[steps.slot[step] + run[step] - run[steps.last[step]]] + steps.lag[step])


@compiled
def _ended(label: Numbers, step: int, run: Numbers, end: int, steps: ChainSteps) -> None:
    """Note when a micro-batch ended a step; after its last one it leaves the row of those in flight."""
    last, since = steps.last[step], steps.slot[step]
    if step != last:
        label[since + run[step] - run[last]] = end
        return
    until = steps.slots
    for other in steps.slot:
        if other > since:
            until = min(until, other)
    for time in range(since, until - 1):
        label[time] = label[time + 1]
    label[until - 1] = 0


@compiled
def _lift(label: Numbers, waits: Numbers, steps: ChainSteps) -> None:
    """Raise the times of a label to those before which nothing that is left can start anyway."""
    devices, slots = len(steps.room), steps.slots
    for device in range(devices):
        soonest = np.int64(NEVER)
        for entry in range(len(waits)):
            step, since, until = waits[entry, 0], waits[entry, 1], waits[entry, 2]
            comes = label[slots + steps.device[step]] - steps.lag[step]
            if since < until:
                for time in range(since, until):
                    label[time] = max(label[time], comes)
                comes = label[since]
            else:
                comes = max(np.int64(steps.origin), comes)
            if steps.reach[step, device] >= 0:
                soonest = min(soonest, comes + steps.reach[step, device])
        if soonest < NEVER:
            label[slots + device] = max(label[slots + device], soonest)
        label[slots + devices + device] = max(label[slots + devices + device], label[slots + device])


@compiled
def _in_time(label: Numbers, latest: Numbers) -> bool:
    for time in range(len(label)):  # noqa: SIM110 - Numba compiles no generator
        if label[time] >= latest[time]:
            return False
    return True
