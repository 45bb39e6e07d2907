"""Gaps in which a device must idle: before its first backward, after its last forward, and between the two.

In each gap memory allows only so much work, while a micro-batch's trip to the last stage and back sets its least
length.
"""

from __future__ import annotations

from typing import NamedTuple

from pipesched.problem.passes import F, W
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, Ticks
from pipesched.problem.view import PipelineView
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.analytic.idle_time.knapsack import most_value


class IdleGap(NamedTuple):
    """An interval of a device that lasts at least `length` ticks, in which at most `filled` ticks of work can run."""

    length: Ticks
    filled: Ticks

    @property
    def idle(self) -> Ticks:
        return max(0, self.length - self.filled)


def head_gap(paths: Paths, device: DeviceId, chains: list[list[StageId]], spare: int) -> IdleGap:
    """Return the gap from a device's first start to the start of its first backward, in which only forwards can run.

    The gap has its least length, and the most ticks of forwards that memory admits in it. The first backward is on the
    last stage that some chain has on the device, so its micro-batch has run all stages of the chain there before.
    `spare` is the number of forwards that are known to run later (0 or 1). `chains` has the device's stages, a list for
    each chain, in chain order.
    """
    lengths = []
    for chain in chains:
        path = sum(paths.forward[s] for s in chain) + paths.away(chain)[0]
        lengths.append(path + paths.round_trip[chain[-1]])
    stages = [stage for chain in chains for stage in chain]
    view = paths.view
    alone = {s: view.ticks[F, s] for s in stages}
    items = [(alone[s], view.memory_in_flight[s], len(view.microbatches_of[s])) for s in stages]
    filled = most_value(items, view.room[device])
    everything = sum(value * count for value, _, count in items)
    if spare:
        filled = min(filled, everything - min(alone.values()))
    return IdleGap(min(lengths), filled)


def tail_gap(paths: Paths, device: DeviceId, chains: list[list[StageId]]) -> IdleGap:
    """Return the gap from the end of a device's last forward to the start of that micro-batch's last backward there.

    The gap has its least length, and the most ticks of passes that can run in it: backwards and weight passes of
    micro-batches whose activations were in memory together with those of the last one. Since any chain may be last, the
    one with the least idle time counts. `chains` has the device's stages, a list for each chain, in chain order.
    """
    gaps = []
    for chain in chains:
        later = chain[1:]
        own = sum(paths.view.least_backward(stage) for stage in later)
        back = sum(paths.gradient[s] for s in later) + paths.away(chain)[1]
        filled = waiting_in_memory(paths.view, device, chains, chain) + own
        gaps.append(IdleGap(paths.round_trip[chain[-1]] + back, filled))
    return min(gaps, key=lambda gap: gap.idle)


class ForcedRoundTrips(NamedTuple):
    """The number of round trips (`trips`) that must lie between a device's first and last gap, and the gap of each."""

    trips: int
    gap: IdleGap


def forced_round_trips(paths: Paths, device: DeviceId, chains: list[list[StageId]]) -> ForcedRoundTrips:
    """Return the round trips, one after the other, that memory forces between a device's first and last gap.

    `chains` has the device's stages, a list for each chain, in chain order. There are none on a device of several
    chains, nor where memory limits nothing. When the last forward of a micro-batch on the device ends, all its
    activations there are in memory, and stay until its first backward. K micro-batches fit at once, and passes of one
    kind and stage run in micro-batch order. So the last forward of micro-batch j + K follows the first backward of
    micro-batch j, and the round trips of micro-batches 0, K, 2K, ... and of the last one cannot overlap. These are (m -
    1) // K + 1, including the one in the first gap and the one in the last.

    During each of them, two kinds of passes can run: forwards of later micro-batches, whose activations stay in memory,
    and the remaining passes of earlier ones that were in memory at its beginning.
    """
    none = ForcedRoundTrips(0, IdleGap(0, 0))
    view, capacity = paths.view, paths.view.room[device]
    if len(chains) != 1 or capacity is None:
        return none
    (chain,) = chains
    of_microbatch, microbatches = sum(view.memory_in_flight[s] for s in chain), len(view.microbatches_of[chain[0]])
    admitted = capacity // of_microbatch if of_microbatch else microbatches
    if not 0 < admitted < microbatches:
        return none
    items = [(view.ticks[F, s], view.memory_in_flight[s], microbatches - 1) for s in chain]
    if len(chain) == 1:
        items = [(ticks, size, admitted - 1) for ticks, size, _ in items]
    filled = most_value(items, capacity - of_microbatch) + waiting_in_memory(view, device, chains, chain)
    return ForcedRoundTrips((microbatches - 1) // admitted - 1, IdleGap(paths.round_trip[chain[-1]], filled))


def waiting_in_memory(view: PipelineView, device: DeviceId, chains: list[list[StageId]], last: list[StageId]) -> Ticks:
    """Return the most ticks of work that other micro-batches can have left when the device's last forward ends.

    That forward is on the last stage of `last`, the stages on the device of one of its `chains`. So all activations of
    its micro-batch there are in memory, and those of the others must fit in addition.
    """
    capacity = view.room[device]
    room = None if capacity is None else capacity - sum(view.memory_in_flight[s] for s in last)
    items = []
    everything = 0
    for stage in (s for c in chains for s in c):
        count = len(view.microbatches_of[stage]) - (stage in last)
        items += [(value, size, count) for value, size in _pending(view, stage)]
        everything += view.least_backward(stage) * count
    return min(everything, most_value(items, room))


def _pending(view: PipelineView, stage: StageId) -> list[tuple[Ticks, MemorySteps]]:
    """Return the states in which a micro-batch has work left on a stage after its forward: (ticks left, memory in use).

    They are the whole backward and, where backwards may be split, W alone.
    """
    whole = [(view.least_backward(stage), view.memory_in_flight[stage])]
    return [*whole, (view.ticks[W, stage], view.memory_until_weight[stage])] if view.splits else whole


def forced_apart(view: PipelineView, device: DeviceId, chains: list[list[StageId]]) -> bool:
    """True if memory cannot have all activations of a device at once; `chains` has its stages, a list for each chain.

    Then some backward starts before the last forward, and the gap before the first backward and that after the last
    forward do not overlap, and their idle times add up.
    """
    capacity = view.room[device]
    stages = [stage for chain in chains for stage in chain]
    everything = sum(view.memory_in_flight[s] * len(view.microbatches_of[s]) for s in stages)
    return capacity is not None and everything > capacity
