"""The bound by crossings where blocks overlap: the least time over all orders of a chain's steps, and over all blocks.

As for crossings of steps; what is new is that a forward and a gradient of a device, of two micro-batches, may run as
one block. If the names of micro-batches are exchanged on each stage by the order in which they run there, each place
in a device's order keeps its block, and all that it waits for is still before it. A block is two steps of the dynamic
program at once, so that what it leads to belongs to the layer after the next. Blocks with passes of other chains count
as the pass of this chain alone, for the least time that it may take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event
from typing import NamedTuple

import numpy as np

from pipesched.problem.formatting import amount, counted
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingBlocks
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_blocks.blocks import block_ticks
from solver.bounds.crossing_blocks.layers import successors_with_blocks
from solver.bounds.crossing_steps.device_sets import Trial, trials
from solver.bounds.crossing_steps.layers import Layer, _slices, merged
from solver.bounds.crossing_steps.moves import NEVER
from solver.bounds.crossing_steps.steps import Numbers, Steps, state_count, steps_of, walked_chains

# The name of its certificates.
KIND = "crossings with blocks"
# Labels looked at in all; by one call of compiled code, which nothing can interrupt; and in a layer, which has memory.
WORK, _AT_ONCE, _LAYER = 20_000_000, 50_000, 2_000_000
# States of a layer beyond which the first and the last device come later, if at all.
_MOST_STATES = 10_000


class Labels(NamedTuple):
    """Keys of states, each with a label."""

    keys: Numbers
    labels: Numbers


class Least(NamedTuple):
    """The least ticks from the first step to the end of what counts, None where that is too much work.

    How many labels were looked at; and whether labels were merged, so that more of them might prove more.
    """

    ticks: int | None
    work: int
    merged: bool


def crossing_block_bounds(
    problem: Problem, stop: Event, widths: Sequence[int] = (8, 64), work: int = WORK
) -> Iterator[Certificate]:
    """On more and more devices of each chain, while that takes no more than so much work; each above those before.

    Nothing without blocks, or where a pass is several tasks.
    """
    if not problem.overlaps or problem.network.options or not problem.network.one_task_each:
        return
    best, paths, told_apart = 0, Paths(problem), set[tuple[tuple[int, ...], tuple[int, ...]]]()
    for trial in _trials(problem, widths):
        steps = steps_of(problem, paths, trial.chain, trial.devices)
        if steps is None or (trial.chain, trial.devices) in told_apart:
            continue
        found = least_value(steps, block_ticks(problem, trial.chain, trial.devices), trial.width, work, stop)
        work -= found.work
        if not found.merged:
            told_apart.add((trial.chain, trial.devices))
        if found.ticks is not None and found.ticks > best:
            best = found.ticks
            yield _certificate(problem, trial, best)
        if work <= 0 or stop.is_set():
            return


def _trials(problem: Problem, widths: Sequence[int]) -> list[Trial]:
    """The same as for crossings of steps, after the device of a chain's first stage with that of its last one.

    Where a chain comes back to its devices, that is the last one before it turns: what its micro-batches wait for there
    adds to what they wait for on the first.
    """
    chains, where = [*walked_chains(problem)], problem.placement.stage_device
    ends = []
    for chain in chains:
        devices = list(dict.fromkeys(where[stage] for stage in chain))
        if len(devices) > 1 and state_count(problem, chain, (devices[0], devices[-1])) <= _MOST_STATES:
            ends += [Trial(chain, (devices[0], devices[-1]), width) for width in sorted(widths)[:1]]
    return [*ends, *(trial for trial in trials(problem, chains, widths) if trial not in ends)]


def least_value(steps: Steps, blocks: Numbers, width: int, work: int, stop: Event) -> Least:
    """By dynamic programming, a step a layer."""
    none = Labels(np.empty(0, np.int64), np.empty((0, steps.in_flight + 2 * len(steps.room)), np.int64))
    layer = Layer(np.zeros(1, np.int64), np.array([0, 1], np.int64), np.zeros((1, none.labels.shape[1]), np.int64))
    best, used, done, merges, further = NEVER, 0, 0, False, none
    while len(layer.keys) or len(further.keys):
        ended, one_more, two_more = _successors(layer, steps, blocks, done, stop)
        near, further = _joined([further, *one_more]), _joined([none, *two_more])
        best, used, done = min(best, ended), used + len(near.keys), done + 1
        if used > work or len(near.keys) + len(further.keys) > _LAYER or stop.is_set():
            return Least(None, used, True)
        order = np.argsort(near.keys, kind="stable")
        *parts, merges_here = merged(near.keys[order], near.labels[order], width)
        layer, merges = Layer(*parts), merges or merges_here
    return Least(best if best < NEVER else None, used, merges)


def _successors(
    layer: Layer, steps: Steps, blocks: Numbers, done: int, stop: Event
) -> tuple[int, list[Labels], list[Labels]]:
    """The least value of what ended; what comes after one step more, and what after a block, in parts."""
    ended, near, far, size = NEVER, list[Labels](), list[Labels](), 0
    for since, until in _slices(layer.first, _AT_ONCE // (steps.in_flight + 1)):
        if stop.is_set() or size > _LAYER:
            break
        keys, labels, far_keys, far_labels, value = successors_with_blocks(layer, since, until, steps, blocks, done)
        near.append(Labels(keys, labels))
        far.append(Labels(far_keys, far_labels))
        ended, size = min(ended, value), size + len(keys) + len(far_keys)
    return ended, near, far


def _joined(parts: Sequence[Labels]) -> Labels:
    keys, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Labels(keys, labels)


def _certificate(problem: Problem, trial: Trial, value: int) -> Certificate:
    chain, devices = trial.chain, trial.devices
    count = len(problem.microbatches_of[chain[0]])
    where = f"device {devices[0]}" if len(devices) == 1 else f"devices {', '.join(map(str, devices))}"
    stages = counted(sum(problem.placement.stage_device[stage] in devices for stage in chain), "stage")
    text = (
        f"On {where} the forwards and gradients of {stages} of a chain take turns, or run two at a time as an "
        f"overlapped block, which ends both; a device starts a forward only while its memory has room for it; a "
        f"micro-batch is away for as long as other devices take. In whichever order and blocks they run, all {count} "
        f"micro-batches take at least {amount(problem, value)}."
    )
    return Certificate(KIND, value, text, devices[0], CrossingBlocks(chain[0], devices, trial.width))
