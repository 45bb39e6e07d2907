"""Ranks of partial orders, compiled: the time that devices still need, and the progress of each micro-batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.compiled import inner
from solver.beam.nodes import is_next, offsets
from solver.beam.tables import Numbers, StepTables

# Later than any time.
NEVER = 2**60
# By device: remaining time, remaining forwards and gradients, pending weight passes, the next arrival of a micro-batch,
# and the memory times time that remaining activations need.
_WORK, _FORWARDS, _GRADIENTS, _BACKLOG, _SOON, _AREA = range(6)
SUMS = 6


class Preference(NamedTuple):
    """Weights of the terms of a node's rank; the mean over devices of their estimated times from the opening counts 1.

    `longest` weighs the largest of these times and of the estimated ends of micro-batches in flight, `microbatches` the
    sum of these ends divided by the number of all micro-batches. For up to `block_wait` ticks another pass on the
    device is skipped in favour of a block. `memory` is the factor by which activations are expected to live longer than
    without waiting.
    """

    block_wait: float
    longest: float
    microbatches: float
    memory: float


@inner
def _add_up(row: Numbers, tables: StepTables, sums: NDArray[np.float64]) -> tuple[int, float]:
    """Fill `sums` with estimates by device, a row for each of `_WORK` to `_AREA`.

    Return two numbers about micro-batches in flight: the latest of their estimated ends, and the sum of these ends, in
    ticks, if each micro-batch ran alone from now on; 0 if none is in flight. The rows are, for what still has to run:
    ticks of work, number of forwards, number of gradients, ticks of pending weight passes, the tick at which a
    micro-batch first arrives at the device (`NEVER` if none does), and memory times ticks that activations will occupy.
    `row` is the node.
    """
    ends, free, waiting, _, _ = offsets(tables)
    steps, devices, longest, flying = tables.device.shape[0], tables.room.shape[0], 0, 0.0
    for device in range(devices):
        for one in range(SUMS):
            sums[one, device] = 0.0
        sums[_SOON, device] = NEVER
    for step in range(steps):
        device, left, before = tables.device[step], tables.microbatches[step] - row[step], tables.before[step]
        sums[_WORK, device] += left * tables.ticks[step]
        if tables.weight[step] < 0:
            sums[_FORWARDS, device] += left
        else:
            sums[_GRADIENTS, device] += left
            sums[_WORK, device] += left * tables.weight[step]
            sums[_BACKLOG, device] += row[waiting + step] * tables.weight[step]
        here = row[before] - row[step] if before >= 0 else 0
        for one in range(row[step], row[step] + here):
            since = max(row[ends + tables.first[step] + one] + tables.lag[step], row[free + device])
            longest = max(longest, since + tables.tail[step])
            flying += since + tables.tail[step]
            for other in range(devices):
                sums[_AREA, other] += tables.occupied[step, other] * (since - row[free + other])
        coming = left if before < 0 else here
        for other in range(devices if coming > 0 else 0):
            sums[_AREA, other] += coming * tables.area[step, other]
        # The micro-batches that have arrived at this step; the first one is the earliest.
        if is_next(row, step, tables):
            since = row[free + device] if before < 0 else row[ends + tables.first[step] + row[step]] + tables.lag[step]
            for other in range(devices):
                if tables.reach[step, other] >= 0:
                    sums[_SOON, other] = min(sums[_SOON, other], since + tables.reach[step, other])
    return longest, flying


@inner
def ranked(row: Numbers, tables: StepTables, prefers: Preference, sums: NDArray[np.float64]) -> float:
    """Return the rank of a node, a weighted sum of estimates in ticks of the orders that begin so; lower is better.

    Each device runs its remaining work, in as many blocks as it has forwards and gradients for, from the next arrival
    on; its memory times time must suffice for the remaining activations; each micro-batch in flight runs to its end.
    The terms are weighted by `prefers` (a `Preference`). `row` is the node, `sums` working space (`SUMS` rows by
    device). A float, which orders nodes of a layer and proves nothing.
    """
    _, free, _, _, _ = offsets(tables)
    steps, devices, mean = tables.device.shape[0], tables.room.shape[0], 0.0
    longest, flying = _add_up(row, tables, sums)
    for device in range(devices):
        until = row[free + device] + sums[_BACKLOG, device]
        pairs = min(sums[_FORWARDS, device], sums[_GRADIENTS, device])
        if sums[_FORWARDS, device] + sums[_GRADIENTS, device] > 0:
            until = max(until, sums[_SOON, device]) + sums[_WORK, device] - tables.saved[device] * pairs
        if tables.room[device] > 0:  # else its activations take no memory
            until = max(until, row[free + device] + prefers.memory * sums[_AREA, device] / tables.room[device])
        longest = max(longest, until - tables.opens[device])
        mean += until - tables.opens[device]
    all_of = tables.first[steps - 1] + tables.microbatches[steps - 1]
    return mean / devices + prefers.longest * longest + prefers.microbatches * flying / all_of
