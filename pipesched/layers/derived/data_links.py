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

        Between two measured numbers of nodes it is interpolated, in logarithms of both; beyond them it is the nearest
        measured one.
        """
        first, last = self.measured[0], self.measured[-1]
        if nodes <= first[0]:
            return first[1]
        for (fewer, high), (more, low) in pairwise(self.measured):
            if nodes <= more:
                return exp(log(high) + log(low / high) * log(nodes / fewer) / log(more / fewer))
        return last[1]

    def of_stage(self, parallel: Parallel, node: int) -> float:
        """Return the bandwidth, in GB/s, of exchanges among the devices of a stage that have the same parameters.

        `node` is the number of devices of a node; devices of a stage are consecutive. On several nodes, the groups of
        devices with the same parameters share the links of a node. The most that these carry is the highest rate of
        those measured on several nodes and that for the stage's own number of nodes. A group gets the part of it that
        its members are of a node's devices, but no more than the rate for the stage's own number of nodes.
        """
        nodes = nodes_of_stage(parallel, node)
        rate = self.at(nodes)
        if nodes == 1:
            return rate
        most = max([rate, *(each for number, each in self.measured if number > 1)])
        return min(rate, most * members_in_node(parallel, node) / node)

    def beyond(self, parallel: Parallel, node: int) -> list[str]:
        """Return text on the rate that is used if a stage is on more nodes than any measured rate; empty if it is not.

        `node` is the number of devices of a node.
        """
        nodes, (last, rate) = nodes_of_stage(parallel, node), self.measured[-1]
        if nodes <= last:
            return []
        return [
            f"data parallel: a stage is on {nodes} nodes, hardware.data_bandwidth has no rate of more than {last}: "
            f"that of {last}, {rate:g} GB/s, is used"
        ]

    def __str__(self) -> str:
        return "{" + ", ".join(f"{nodes}: {rate:g}" for nodes, rate in self.measured) + "}"


def nodes_of_stage(parallel: Parallel, node: int) -> int:
    """Return over how many nodes, of `node` devices each, the consecutive devices of a stage extend."""
    return -(-parallel.devices // node)


def members_in_node(parallel: Parallel, node: int) -> int:
    """Return how many devices of a node have the same parameters."""
    return max(1, min(parallel.context * parallel.data, node // parallel.tensor))
