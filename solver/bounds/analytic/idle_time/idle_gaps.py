"""The gaps in which a device must idle: before its first backward, after its last forward, and between the two.

In each memory leaves only so much work to fill a wait whose least length the chain's round trip sets.
"""

from __future__ import annotations

from typing import NamedTuple

from pipesched.problem.passes import F, Pass, W
from pipesched.problem.problem import Problem
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.analytic.idle_time.knapsack import most_value


class Gap(NamedTuple):
    """A time that must pass, and the most work that can be done in it."""

    length: int
    filled: int

    @property
    def idle(self) -> int:
        return max(0, self.length - self.filled)


def head_gap(problem: Problem, paths: Paths, device: int, chains: list[list[int]], spare: int) -> Gap:
    """From the start of the device's first pass to its first backward, in which only forwards can run.

    The first backward is of some chain's last stage on the device, whose micro-batch has walked all the device's
    stages of that chain before. `spare` forwards are known to run later.
    """
    lengths = []
    for chain in chains:
        way = sum(paths.forward[s] for s in chain) + paths.away(chain)[0]
        lengths.append(way + paths.round_trip[chain[-1]])
    stages = [stage for chain in chains for stage in chain]
    network = problem.network
    alone = {s: problem.duration(Pass(F, s, 0)) for s in stages}
    items = [(alone[s], network.held_in_flight[s], len(problem.microbatches_of[s])) for s in stages]
    filled = most_value(items, problem.room[device])
    everything = sum(value * count for value, _, count in items)
    if spare:
        filled = min(filled, everything - min(alone.values()))
    return Gap(min(lengths), filled)


def tail_gap(problem: Problem, paths: Paths, device: int, chains: list[list[int]]) -> Gap:
    """From the end of the device's last forward to that micro-batch's last backward on it.

    In between only backwards and weight passes run, of micro-batches whose activations memory held beside those of
    the last micro-batch. The gap of the chain that leaves least idle time counts, since any may come last.
    """
    gaps = []
    for chain in chains:
        later = chain[1:]
        own = sum(problem.least_backward(stage) for stage in later)
        back = sum(paths.gradient[s] for s in later) + paths.away(chain)[1]
        filled = waiting_in_memory(problem, device, chains, chain) + own
        gaps.append(Gap(paths.round_trip[chain[-1]] + back, filled))
    return min(gaps, key=lambda gap: gap.idle)


class Between(NamedTuple):
    """How many gaps between the first and the last are apart from these and from each other, and one of them."""

    trips: int
    gap: Gap


def between(problem: Problem, paths: Paths, device: int, chains: list[list[int]]) -> Between:
    """Round trips in a row between the first and the last, on a device that one chain visits; none counted on others.

    When a micro-batch's last forward on the device ends, memory holds all its activations there, until its first
    backward has run. K micro-batches fit in so at once, and passes of a kind and stage run in micro-batch order: so the
    last forward of j + K comes after the first backward of j, and from the one to the other the round trips of
    micro-batches 0, K, 2K, ... and of the last are apart: (m - 1) // K + 1 of them. In each can run: forwards of later
    micro-batches, which stay in memory, and what earlier ones that were in memory at its beginning have left.
    """
    none = Between(0, Gap(0, 0))
    capacity, network = problem.room[device], problem.network
    if len(chains) != 1 or capacity is None:
        return none
    (chain,) = chains
    held, microbatches = sum(network.held_in_flight[s] for s in chain), len(problem.microbatches_of[chain[0]])
    admitted = capacity // held if held else microbatches
    if not 0 < admitted < microbatches:
        return none
    items = [(problem.duration(Pass(F, s, 0)), network.held_in_flight[s], microbatches - 1) for s in chain]
    if len(chain) == 1:
        items = [(ticks, size, admitted - 1) for ticks, size, _ in items]
    filled = most_value(items, capacity - held) + waiting_in_memory(problem, device, chains, chain)
    return Between((microbatches - 1) // admitted - 1, Gap(paths.round_trip[chain[-1]], filled))


def waiting_in_memory(problem: Problem, device: int, chains: list[list[int]], last: list[int]) -> int:
    """The most work that other micro-batches have left when the device's last forward ends.

    That forward is of the chain whose stages here are `last`: of its last stage here, so the micro-batch holds all its
    activations. The others' must fit beside them.
    """
    network, capacity = problem.network, problem.room[device]
    room = None if capacity is None else capacity - sum(network.held_in_flight[s] for s in last)
    items = []
    everything = 0
    for stage in (s for c in chains for s in c):
        count = len(problem.microbatches_of[stage]) - (stage in last)
        items += [(value, size, count) for value, size in _pending(problem, stage)]
        everything += problem.least_backward(stage) * count
    return min(everything, most_value(items, room))


def _pending(problem: Problem, stage: int) -> list[tuple[int, int]]:
    """(work still to run, memory held) of a micro-batch whose forward is done, and of one that waits for W alone."""
    network = problem.network
    whole = [(problem.least_backward(stage), network.held_in_flight[stage])]
    if not problem.splittable:
        return whole
    return [*whole, (problem.duration(Pass(W, stage, 0)), network.held_for_weight[stage])]


def forced_apart(problem: Problem, device: int, chains: list[list[int]]) -> bool:
    """Whether memory forces a backward to start before the last forward, so that the two gaps are apart."""
    capacity = problem.room[device]
    stages = [stage for chain in chains for stage in chain]
    everything = sum(problem.network.held_in_flight[s] * len(problem.microbatches_of[s]) for s in stages)
    return capacity is not None and everything > capacity
