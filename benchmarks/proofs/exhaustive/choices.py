"""Passes that may run next on a device, for the search over the orders of all devices together: compiled."""

from __future__ import annotations

import numpy as np

from benchmarks.proofs.exhaustive.limits import (
    ACTIVATION,
    AFTER,
    BEFORE,
    BLOCK,
    DEVICE,
    FIRST,
    FIRST_BACK,
    FREED,
    FUSED,
    SAVES,
    WEIGHT,
    Numbers,
)
from pipesched.compiled import compiled


@compiled
def choose(  # noqa: PLR0912
    passes: Numbers,
    needs: Numbers,
    start: Numbers,
    memory: Numbers,
    ran: int,
    room: Numbers,
    choices: Numbers,
) -> int:
    """Write into `choices` what may be next on the device that has fewest of these, the earliest first; how many.

    A number for each: 10000 times the role, 100 times the pair, and the pair of the backward in the same block, or 99.
    """
    pairs, fewest = passes.shape[1], 2**30
    found = np.zeros(len(choices), np.int64)
    for d in range(len(room)):
        count, open_ = 0, False
        for k in range(pairs):
            if passes[DEVICE, k] != d:
                continue
            f, b, w = ran >> 3 * k & 1, ran >> 3 * k + 1 & 1, ran >> 3 * k + 2 & 1
            if f and b and w:
                continue
            open_ = True
            if not f and not needs[3 * k] & ~ran and memory[d] + passes[ACTIVATION, k] <= room[d]:
                found[count] = 100 * k + 99
                count += 1
                for mate in range(pairs if passes[BLOCK, k] >= 0 or passes[SAVES, k] >= 0 else 0):
                    backward = 3 * mate + 1
                    open_too = passes[DEVICE, mate] == d and passes[FUSED, mate] >= 0 and not ran >> backward & 1
                    if open_too and not needs[backward] & ~ran:
                        found[count] = 100 * k + mate
                        count += 1
            if not b and not needs[3 * k + 1] & ~ran:
                if passes[WEIGHT, k] >= 0 and memory[d] + max(0, -passes[FREED, k]) <= room[d]:
                    found[count] = 10000 + 100 * k + 99
                    count += 1
                if passes[FUSED, k] >= 0:
                    found[count] = 30000 + 100 * k + 99
                    count += 1
            if b and not w:
                found[count] = 20000 + 100 * k + 99
                count += 1
        if open_ and count < fewest:
            fewest = count
            choices[:count] = found[:count]
    for i in range(1, fewest):
        for j in range(i, 0, -1):
            if _when(choices[j], start) >= _when(choices[j - 1], start):
                break
            choices[j], choices[j - 1] = choices[j - 1], choices[j]
    return fewest


@compiled
def _when(choice: int, start: Numbers) -> int:
    role = choice // 10000
    return int(start[3 * (choice // 100 % 100) + (1 if role == 3 else role)])


@compiled
def needs_of(passes: Numbers) -> Numbers:
    """For each forward and backward the passes of its own device that surely come first, as bits."""
    pairs = passes.shape[1]
    needs = np.zeros(3 * pairs, np.int64)
    for k in range(pairs):
        if passes[FIRST, k] >= 0:
            needs[3 * k] |= 1 << 3 * passes[FIRST, k]
        q = passes[BEFORE, k]
        while q >= 0:
            if passes[DEVICE, q] == passes[DEVICE, k]:
                needs[3 * k] |= 1 << 3 * q
            q = passes[BEFORE, q]
        needs[3 * k + 1] |= 1 << 3 * k
        if passes[FIRST_BACK, k] >= 0:
            needs[3 * k + 1] |= 2 << 3 * passes[FIRST_BACK, k]
        q = passes[AFTER, k]
        while q >= 0:
            if passes[DEVICE, q] == passes[DEVICE, k]:
                needs[3 * k + 1] |= 3 << 3 * q
            q = passes[AFTER, q]
    return needs
