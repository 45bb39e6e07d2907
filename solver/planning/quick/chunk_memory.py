"""Peak activation memory of each device under 1F1B (closed form) and interleaved 1F1B (one round of its chunks)."""

from __future__ import annotations

import numpy as np

from solver.planning.quick.order_ends import WholeArray


def in_flight(devices: int, chunks: int, microbatches: int) -> list[int]:
    """Return for each device the most forwards, over all its chunks, whose backward has not run, at any moment.

    The order is 1F1B, or interleaved 1F1B if there are several chunks per device; `devices` must then divide
    `microbatches`.
    """
    hop = 2 if chunks > 1 else 1
    each = [hop * (devices - 1 - d) + (chunks - 1) * devices + 1 for d in range(devices)]
    return [min(one, microbatches * chunks) for one in each]


def peaks(activation: WholeArray, microbatches: int) -> WholeArray:
    """Return the peak activation memory of each device, in the unit of `activation`, under (interleaved) 1F1B.

    `activation[i, c]` is that of one forward of device i's chunk c. With several chunks per device the micro-batches
    run in groups of as many as there are devices, which must divide their number.
    """
    devices, chunks = activation.shape
    warm_up = np.array(in_flight(devices, chunks, microbatches))
    if chunks == 1:
        alone: WholeArray = activation[:, 0] * warm_up
        return alone
    total, group = microbatches * chunks, devices * chunks
    turns = np.arange(min(total, int(warm_up[0]) + group))
    zero = np.zeros((devices, 1), activation.dtype)
    taken = np.concatenate([zero, np.cumsum(activation[:, turns // devices % chunks], axis=1)], axis=1)
    given = np.concatenate([zero, np.cumsum(activation[:, chunks - 1 - turns // devices % chunks], axis=1)], axis=1)
    # The peak is after some forward of the round that follows the warm-up.
    later = np.arange(min(group, len(turns) - int(warm_up[0])) + 1)
    levels = np.take_along_axis(taken, warm_up[:, None] + later, axis=1) - given[:, later]
    most: WholeArray = levels.max(axis=1)
    return most
