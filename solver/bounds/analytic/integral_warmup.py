"""Integral warm-up: until its first backward a device runs forwards only, and can switch only between two of them.

So its first backward starts after an integral number of forwards and some idle time, or waits for another forward to
end. A backward that waits delays all devices upstream of it, whose memory limits how many forwards they can run in the
meantime: idle time avoided on one device appears on another. The round-trip bound treats devices independently and
misses this.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipesched.deadline import SHORT, asking
from pipesched.problem.formatting import amount
from pipesched.problem.passes import F
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from pipesched.problem.view import PipelineView
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OnDevice
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.critical_paths import Paths, visited
from solver.bounds.analytic.idle_time.idle_gaps import forced_apart, head_gap, tail_gap

# Devices of several stages with more sums of forward durations are treated as able to switch at any time, by the check
# as well.
_MOST_SUMS = 10_000


@dataclass(frozen=True)
class _Head:
    """A device until its first backward, in which it runs forwards alone; times in ticks.

    `stages` are its stages in chain order. `least` is the device's value if it never idles before its first backward,
    and after its last forward only as long as it must: at a threshold V it may idle V - `least` before its first
    backward. `path` is the least time from its first forward to its first backward. `sums` are the ascending total
    durations of sets of forwards that fit the memory; every number of ticks up to the largest, if there are too many
    sets.
    """

    device: DeviceId
    stages: list[StageId]
    least: Ticks
    path: Ticks
    sums: Sequence[Ticks]

    def first_backward(self, ready: Ticks, idle: Ticks) -> Ticks | None:
        """Return the least ticks from the device's first forward to its first backward, if it may idle `idle` before.

        Idle time is in ticks. `ready` are the ticks from the first forward to the arrival of the gradient. If all sums
        of forwards that have ended by then leave more idle time, the backward waits for the end of a further forward;
        None if memory has no room for it, or no forward is left.
        """
        done = bisect_right(self.sums, ready)
        if ready - self.sums[done - 1] <= idle:
            return ready
        return self.sums[done] if done < len(self.sums) else None


class _NestedHeads:
    """The devices of one chain in `heads`, in descending order of their first stage on it, and what their waits imply.

    `within[n]` has, for each device nested in number n, its index in `heads` and the ticks of the path there and back.
    `least_values` returns by device the least threshold that it and those before it can meet, `certificates` those
    bounds with their proofs.
    """

    def __init__(self, problem: Problem, paths: Paths, heads: list[_Head]) -> None:
        self.problem, self.paths = problem, paths
        place = {stage: at for chain in paths.view.placement.chains for at, stage in enumerate(chain)}
        self.heads = sorted(heads, key=lambda head: -place[head.stages[0]])
        # For each device those that are reached later and left earlier: their index here, and the path to them and
        # back.
        self.within: list[list[tuple[int, int]]] = []
        for at, head in enumerate(self.heads):
            inner = [(i, other) for i, other in enumerate(self.heads[:at]) if self._nested(place, other, head)]
            self.within.append([(i, self._between(head, other)) for i, other in inner])

    @staticmethod
    def _nested(place: dict[StageId, int], inner: _Head, outer: _Head) -> bool:
        return place[inner.stages[0]] > place[outer.stages[0]] and place[inner.stages[-1]] > place[outer.stages[-1]]

    def _between(self, outer: _Head, inner: _Head) -> Ticks:
        """Return the least ticks of forwards down and gradients up between the devices `outer` and `inner`, as a sum.

        The first is from the first forward of `outer` to the first forward of `inner`; the second from the start of a
        gradient on the last stage of `inner` to the start of that gradient on the last stage of `outer`.
        """
        paths, enters, leaves = self.paths, inner.stages[0], inner.stages[-1]
        there = paths.head[enters] - paths.head[outer.stages[0]]
        last = outer.stages[-1]
        return there + paths.gradient[leaves] + paths.back[leaves] - paths.back[last] - paths.gradient[last]

    def first_backwards(self, value: Ticks, count: int) -> list[Ticks | None]:
        """Return the earliest first backward of each of the first `count` devices if all meet the threshold `value`.

        `value` is in ticks, and each result is in ticks after the device's own first forward; the list ends with None
        at the first device that cannot meet the threshold.
        """
        found: list[int | None] = []
        for at, head in asking(enumerate(self.heads[:count])):
            idle = value - head.least
            found.append(head.first_backward(self._ready(at, found), idle) if idle >= 0 else None)
            if found[-1] is None:
                break
        return found

    def _ready(self, at: int, started: Sequence[Ticks | None]) -> Ticks:
        """Return the least ticks from the first forward of device `at` to the arrival of its first gradient.

        `at` is its index in `heads`. `started[i]` is the earliest first backward of device i of those before it there,
        in ticks after that device's own first forward; None is not allowed for devices nested in this one.
        """
        ready = self.heads[at].path
        for i, between in self.within[at]:
            inner = started[i]
            assert inner is not None
            ready = max(ready, inner + between)
        return ready

    def least_values(self) -> list[Ticks]:
        """Return for each device the least threshold in ticks that it and all devices before it in `heads` can meet."""
        values: list[int] = []
        for count, head in enumerate(self.heads, 1):
            low = max([head.least, *values[-1:]])
            high = low
            while self.first_backwards(high, count)[-1] is None:
                high = high + 1 if high == low else low + 2 * (high - low)
            while low < high:
                middle = (low + high) // 2
                if self.first_backwards(middle, count)[-1] is None:
                    low = middle + 1
                else:
                    high = middle
            values.append(high)
        return values

    def certificates(self) -> list[Certificate]:
        """Return a certificate for each device whose least threshold exceeds its own bound and those before it.

        Its own bound is `least`; those before it are the thresholds of all devices before.
        """
        values = self.least_values()
        before = [0, *values]
        longer = [at for at, value in enumerate(values) if value > max(before[at], self.heads[at].least)]
        return [self._certificate(at, values[at]) for at in longer]

    def _certificate(self, at: int, value: Ticks) -> Certificate:
        """Return the certificate of device `at` (index in `heads`).

        One tick less than `value` is a threshold that it cannot meet.
        """
        problem, head = self.problem, self.heads[at]

        def say(ticks: int) -> str:
            return amount(problem, ticks)

        started = self.first_backwards(value - 1, at + 1)[:-1]
        inner = [(self.heads[i], started[i]) for i, _ in self.within[at]]
        first = next((one for one, start in inner if start != one.path and start in one.sums), None)
        wait = "" if first is None else f"device {first.device} must wait, and all behind it; then "
        text = (
            "Until its first backward a device runs forwards only, an integral number of them: a gradient finds the "
            f"device idle, or waits for the end of a forward. With less than {say(value)} {wait}the first gradient "
            f"reaches device {head.device} {say(self._ready(at, started))} after its first forward, of "
            f"which memory has room for {say(head.sums[-1])}, and with its work and its idle time after the last "
            f"forward it takes at least {say(value)}."
        )
        return Certificate("integral warm-up", value, text, head.device, OnDevice(head.device))


def integral_warmup(problem: Problem, objective: Objective) -> list[Certificate]:
    """Return the integral warm-up bounds on the makespan or span (`objective`), chain by chain.

    There is a certificate for each device that improves on those downstream. Only devices that exactly one chain visits
    are considered, and the value must also exceed the device's bound from its own work and idle time. The problem must
    be plain.
    """
    paths = Paths(problem)
    heads: dict[int, list[_Head]] = {}
    for device, chains in visited(paths.view):
        if len(chains) == 1:
            chain = paths.view.placement.chain_index[chains[0][0]]
            heads.setdefault(chain, []).append(_head(paths, objective, device, chains[0]))
    return [one for of_chain in heads.values() for one in _NestedHeads(problem, paths, of_chain).certificates()]


def warm_up_forwards(problem: Problem) -> dict[StageId, int]:
    """Return for each stage the number of forwards before its first backward with which this bound is the least.

    They are for construction heuristics: with these numbers no device idles more than the least value that the bound
    allows. Empty unless every device has one stage. Along a chain the numbers do not increase, since the first backward
    of a device is later than that of the next one. The problem must be plain.
    """
    if any(len(stages) != 1 for stages in problem.placement.stages_of):
        return {}
    paths, found = Paths(problem), dict[int, int]()
    chains: dict[int, list[_Head]] = {}
    for device, visits in visited(paths.view):
        chain = paths.view.placement.chain_index[visits[0][0]]
        chains.setdefault(chain, []).append(_head(paths, problem.objective, device, visits[0]))
    for heads in (_NestedHeads(problem, paths, of_chain) for of_chain in chains.values()):
        started = heads.first_backwards(max(heads.least_values()), len(heads.heads))
        for head, start in zip(heads.heads, started, strict=True):
            (stage,) = head.stages
            ticks = paths.view.ticks[F, stage]
            assert start is not None
            found[stage] = min(start, head.sums[-1]) // ticks if ticks else len(paths.view.microbatches_of[stage])
    for walked in paths.view.placement.chains:
        for before, stage in pairwise(walked):
            found[stage] = min(found[before], found[stage])
    return found


def _head(paths: Paths, objective: Objective, device: DeviceId, stages: list[StageId]) -> _Head:
    start = 0 if objective.by_device else paths.head[stages[0]]
    # If all forwards may run before the first backward, the two gaps may be the same time.
    tail = tail_gap(paths, device, [stages]).idle if forced_apart(paths.view, device, [stages]) else 0
    gap = head_gap(paths, device, [stages], 0)
    sums = _sums(paths.view, device, stages) or range(gap.filled + 1)
    return _Head(device, stages, start + paths.work(device) + tail, gap.length, sums)


def _sums(view: PipelineView, device: DeviceId, stages: list[StageId]) -> Sequence[Ticks] | None:
    """Return the total ticks, ascending from 0, of all sets of forwards on a device that fit its memory together.

    None if there are too many.
    """
    capacity = view.room[device]
    least = {0: 0}  # by length, the least memory that it takes
    for stage in stages:
        ticks, size = view.ticks[F, stage], view.memory_in_flight[stage]
        most = len(view.microbatches_of[stage])
        if capacity is not None and size > 0:
            most = min(most, capacity // size)
        if len(least) * (most + 1) > _MOST_SUMS:
            return None
        longer: dict[int, int] = {}
        for length, memory in asking(least.items(), SHORT):
            for count in range(most + 1):
                total, holds = length + count * ticks, memory + count * size
                if (capacity is None or holds <= capacity) and holds < longer.get(total, holds + 1):
                    longer[total] = holds
        least = longer
    return sorted(least)


BOUNDS.register(Bound("integral warm-up", integral_warmup, rank=5, reads_memory=True))
