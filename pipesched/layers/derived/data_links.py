"""Bandwidth of data parallel exchange by number of nodes, as measured of all-reduce on several."""

from __future__ import annotations

from itertools import pairwise
from math import exp, log
from typing import NamedTuple

from pipesched.layers.derived.shape import Parallel


class ByNodes(NamedTuple):
    """Bandwidth of all-reduce among all devices of so many nodes: (nodes, GB/s) pairs, in ascending order of nodes.

    It is what nccl-tests calls bus bandwidth: bytes that a device sends, over the time.
    """

    measured: tuple[tuple[int, float], ...]

    def at(self, nodes: int) -> float:
        """Return the bandwidth on this many nodes, in GB/s.

        Between two measured numbers of nodes its logarithm is linear in that of the number; beyond them it is the
        nearest.
        """
        first, last = self.measured[0], self.measured[-1]
        if nodes <= first[0]:
            return first[1]
        for (fewer, high), (more, low) in pairwise(self.measured):
            if nodes <= more:
                return exp(log(high) + log(low / high) * log(nodes / fewer) / log(more / fewer))
        return last[1]

    def of_stage(self, parallel: Parallel, node: int) -> float:
        """Return the bandwidth, in GB/s, among devices of a stage that have the same parameters; `node` is its devices.

        Devices of a stage are consecutive. Groups in several nodes share their links: none has more than its members'
        part of the most that these are known to carry.
        """
        nodes = -(-parallel.devices // node)
        rate = self.at(nodes)
        if nodes == 1:
            return rate
        most = max([rate, *(each for number, each in self.measured if number > 1)])
        return min(rate, most * members_in_node(parallel, node) / node)

    def __str__(self) -> str:
        return "{" + ", ".join(f"{nodes}: {rate:g}" for nodes, rate in self.measured) + "}"


def members_in_node(parallel: Parallel, node: int) -> int:
    """Return how many devices of a node have the same parameters."""
    return max(1, min(parallel.context * parallel.data, node // parallel.tensor))
