"""Passes that may run next on a device, for the search over the orders of all devices together: compiled."""

from __future__ import annotations

import numpy as np

from pipesched.compiled import compiled, inner
from tests.support.exhaustive.limits import BW, B, F, Numbers, Passes, W

# A choice is a number: that many times its role, and its pair, and the pair of the backward in the same block or ALONE.
OF_ROLE, OF_PAIR, ALONE = 10_000, 100, 99


@compiled
def choose(passes: Passes, start: Numbers, memory: Numbers, ran: int, room: Numbers, choices: Numbers) -> int:
    """Write into `choices` the choices of the device that has the fewest, those of least start first; return their
    number.

    A choice is a pass that may run next, or a forward with the backward of its block, as a number (see `OF_ROLE`).
    """
    pairs, fewest = len(passes.device), 2**30
    found = np.zeros(len(choices), np.int64)
    for d in range(len(room)):
        count, open_ = 0, False
        for k in range(pairs):
            if passes.device[k] != d or ran >> 3 * k & 7 == 7:
                continue
            open_ = True
            if _is_ready(passes, F, k, memory[d], ran, room[d]):
                found[count] = F * OF_ROLE + k * OF_PAIR + ALONE
                count += 1
                for mate in range(pairs):
                    both = memory[d] + passes.takes[F, k]
                    if passes.block[k, mate] >= 0 and _is_ready(passes, BW, mate, both, ran, room[d]):
                        found[count] = F * OF_ROLE + k * OF_PAIR + mate
                        count += 1
            for role in (B, BW, W):
                if _is_ready(passes, role, k, memory[d], ran, room[d]):
                    found[count] = role * OF_ROLE + k * OF_PAIR + ALONE
                    count += 1
        if open_ and count < fewest:
            fewest = count
            for n in range(count):
                choices[n] = found[n]
    for i in range(1, fewest):
        for j in range(i, 0, -1):
            if _when(choices[j], start) >= _when(choices[j - 1], start):
                break
            choices[j], choices[j - 1] = choices[j - 1], choices[j]
    return fewest


@inner
def node_of(role: int, k: int) -> int:
    """Return the node of a pass of pair k: a backward, split or full, is one node."""
    return 3 * k + (B if role == BW else role)


@inner
def _is_ready(passes: Passes, role: int, k: int, memory: int, ran: int, room: int) -> bool:
    """Return True if a pass can be next on its device: its predecessors ran, and its memory fits on top of `memory` in
    use."""
    node = node_of(role, k)
    waits = ran >> node & 1 or passes.ticks[role, k] < 0 or passes.needs[node] & ~ran
    return not waits and memory + passes.takes[role, k] <= room


@inner
def _when(choice: int, start: Numbers) -> int:
    return int(start[node_of(choice // OF_ROLE, choice // OF_PAIR % OF_PAIR)])
