"""Longest paths to every node of a graph, and back from its ends: loops over plain sequences of integers.

Lists serve numbers of any size. Where there are many that fit 64 bits, arrays and Numba do the same a hundred times as
fast; loading Numba takes a moment, so short schedules go without it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

# Nodes from which on Numba is worth it.
MANY = 20_000

# Lists of integers of any size, or arrays of such as fit 64 bits.
Numbers = Any


@cache
def compiled(kernel: Callable[..., int]) -> Callable[..., int]:
    """A function of this module, compiled for arrays."""
    import pipesched.compiled

    return pipesched.compiled.compiled(kernel)


def fits(*columns: np.ndarray[Any, Any]) -> bool:
    """True if the sum of all these numbers surely fits 64 bits."""
    return all(column.dtype != object for column in columns) and sum(float(c.sum(dtype=float)) for c in columns) < 2**60


def earliest(
    at: Numbers, after: Numbers, lag: Numbers, ticks: Numbers, missing: Numbers, start: Numbers, sequence: Numbers
) -> int:
    """Raise `start` to the earliest starts and put nodes into `sequence` as they come to run; how many do.

    What waits for node n is from `at[n]` to before `at[n + 1]`: node `after[k]`, until `lag[k]` ticks past its end.
    `missing[n]`, which is used up, is how many n waits for.
    """
    found = 0
    for node in range(len(missing)):
        if missing[node] == 0:
            sequence[found] = node
            found += 1
    done = 0
    while done < found:
        node = sequence[done]
        done += 1
        end = start[node] + ticks[node]
        for k in range(at[node], at[node + 1]):
            other = after[k]
            start[other] = max(start[other], end + lag[k])
            missing[other] -= 1
            if missing[other] == 0:
                sequence[found] = other
                found += 1
    return found


def latest(at: Numbers, after: Numbers, lag: Numbers, ticks: Numbers, start: Numbers, sequence: Numbers) -> int:
    """Lower `start` to the latest starts that delay nothing after them; `sequence` is that of `earliest`."""
    for place in range(len(sequence) - 1, -1, -1):
        node = sequence[place]
        for k in range(at[node], at[node + 1]):
            start[node] = min(start[node], start[after[k]] - lag[k] - ticks[node])
    return len(sequence)


def reached(at: Numbers, after: Numbers, lag: Numbers, ticks: Numbers, start: Numbers, sequence: Numbers) -> int:
    """Raise `start` to the latest that a path from a node before it ends; `sequence` is that of `earliest`."""
    for node in sequence:
        end = start[node] + ticks[node]
        for k in range(at[node], at[node + 1]):
            start[after[k]] = max(start[after[k]], end + lag[k])
    return len(sequence)
