"""Longest paths to every node of a graph, and back from its ends: loops over plain sequences of integers.

Lists work for numbers of any size. For many numbers that fit 64 bits, arrays and Numba do the same a hundred times
faster; loading Numba takes a moment, so short schedules go without it.
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
    """Return a function of this module compiled for arrays of 64-bit integers.

    `kernel` is that function.
    """
    import pipesched.compiled

    return pipesched.compiled.compiled(kernel)


def fits(*columns: np.ndarray[Any, Any]) -> bool:
    """Return True if the sum of all these numbers, none of which is negative, certainly fits 64 bits."""
    return all(column.dtype != object for column in columns) and sum(float(c.sum(dtype=float)) for c in columns) < 2**60


def earliest(
    at: Numbers, after: Numbers, lag: Numbers, ticks: Numbers, missing: Numbers, start: Numbers, sequence: Numbers
) -> int:
    """Raise `start` to the earliest start of each node, and fill `sequence` with the nodes in an order that can run.

    `start` is in ticks. Returns the number of nodes in `sequence`. The successors of node n are `after[k]` for k from
    `at[n]` to `at[n + 1]` (exclusive); each waits until `lag[k]` ticks after the end of n. `ticks[n]` is the duration
    of n, and `missing[n]` the number of its predecessors, which is used up.
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
    """Lower `start` to the latest start of each node, in ticks, with which no later node is delayed.

    `sequence` has the nodes in topological order. The successors of node n are `after[k]` for k from `at[n]` to `at[n +
    1]` (exclusive); each waits until `lag[k]` ticks after the end of n, which takes `ticks[n]`. Returns the number of
    nodes in `sequence`.
    """
    for place in range(len(sequence) - 1, -1, -1):
        node = sequence[place]
        for k in range(at[node], at[node + 1]):
            start[node] = min(start[node], start[after[k]] - lag[k] - ticks[node])
    return len(sequence)


def reached(at: Numbers, after: Numbers, lag: Numbers, ticks: Numbers, start: Numbers, sequence: Numbers) -> int:
    """Raise `start[n]` to the latest tick at which some path from earlier nodes, with its lags, arrives at node n.

    `sequence` has the nodes in topological order. The successors of node n are `after[k]` for k from `at[n]` to `at[n +
    1]` (exclusive); each waits until `lag[k]` ticks after the end of n, which takes `ticks[n]`. Returns the number of
    nodes in `sequence`.
    """
    for node in sequence:
        end = start[node] + ticks[node]
        for k in range(at[node], at[node + 1]):
            start[after[k]] = max(start[after[k]], end + lag[k])
    return len(sequence)
