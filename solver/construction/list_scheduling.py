"""List scheduling for any placement and memory: a first schedule where no published one fits.

At each step the pass that can start earliest goes next; on a device, gradients before forwards before weight passes,
but a weight pass waits if a gradient or forward is ready soon. A forward is let onto a device only if those already
under way there can still run to their end, oldest first (the banker's rule), so that memory never locks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.schedule.pass_table import Ints, PassTable
from pipesched.schedule.schedule import Schedule, schedule_of


class Policy(NamedTuple):
    """What a variant of the scheduler prefers."""

    split: bool  # run backwards as B and W
    patience: int  # hundredths of a weight pass that it waits for a gradient or forward to become ready
    later_devices_first: bool  # between devices that could start at the same time
    deepest_first: bool  # between forwards: the stage furthest along, rather than the earliest micro-batch


class ReadyPass(NamedTuple):
    """A pass that could run next; candidates compare by what should go first."""

    start: int
    rank: int
    tie: int
    of: Pass


@dataclass
class _UnderWay:
    """A micro-batch on a device: what it holds there, and what its forwards have yet to take there."""

    held: int
    needed: int


def list_schedules(problem: Problem) -> Iterator[Schedule]:
    """One complete schedule within memory for each policy; a policy that locks itself out gives none.

    That can happen only where chains run against each other, or where B takes more memory than it gives back.
    """
    splits = (True, False) if problem.splittable else (False,)
    for split, later, deepest in product(splits, (True, False), (True, False)):
        for patience in (0, 50, 100, 200) if split else (0,):
            orders = _Run(problem, Policy(split, patience, later, deepest)).orders()
            if orders is not None:
                yield schedule_of(orders, "pipesched")


def sequential(problem: Problem) -> Schedule:
    """One micro-batch after the other, every backward fused: the schedule that fits whenever any does."""
    stages = problem.placement.stages
    pass_types = [(kind, stage) for kind in (F, BW) for stage in range(stages)]
    rows: list[tuple[Ints, Ints, Ints]] = []  # devices, micro-batches, and places among the sorts
    for device, chain in product(range(problem.devices), problem.placement.chains):
        on = [s for s in chain if problem.placement.stage_device[s] == device]
        if on:
            turn = [*on, *(stages + s for s in reversed(on))]
            microbatches = np.array(problem.microbatches_of[on[0]], np.int64)
            count = len(turn) * len(microbatches)
            each = np.repeat(microbatches, len(turn)), np.tile(np.array(turn, np.int64), len(microbatches))
            rows.append((np.full(count, device), *each))
    device_of, microbatch, pass_type = (np.concatenate(column) for column in zip(*rows, strict=True))
    slot = np.arange(len(device_of)) - np.searchsorted(device_of, device_of)
    return Schedule(PassTable(problem.devices, device_of, slot, microbatch, pass_type, pass_types), "pipesched")


class _Run:
    """One run under one policy."""

    def __init__(self, problem: Problem, policy: Policy) -> None:
        self.problem, self.policy = problem, policy
        devices, stages = range(problem.devices), range(problem.placement.stages)
        self.done: list[list[Pass]] = [[] for _ in devices]
        self.free_at = [0] * problem.devices
        self.held = [0] * problem.devices
        self.under_way: list[dict[int, _UnderWay]] = [{} for _ in devices]
        self.begun: list[set[int]] = [set() for _ in devices]
        self.ends: dict[Pass, int] = {}
        self.kinds: tuple[PassKind, ...] = (B, F, W) if policy.split else (BW, F)  # in the order they are preferred
        # Passes of one kind run in micro-batch order on each stage.
        self.next = {(k, s): problem.microbatches_of[s].start for k in self.kinds for s in stages}
        self.best: list[ReadyPass | None] = [self._best(d) for d in devices]

    def orders(self) -> list[list[Pass]] | None:
        """The order of every device; None if memory locks."""
        left = sum(len(self.problem.microbatches_of[s]) for _, s in self.next)
        sign = -1 if self.policy.later_devices_first else 1
        while left:
            choices = [(c.start, sign * d, c.of) for d, c in enumerate(self.best) if c is not None]
            if not choices:
                return None
            _, _, p = min(choices)
            self._put(p)
            left -= 1
            where = self.problem.placement
            near = {p.stage, where.previous[p.stage], where.next[p.stage]} - {None}
            for device in {where.stage_device[s] for s in near if s is not None}:
                self.best[device] = self._best(device)
        return self.done

    def _best(self, device: int) -> ReadyPass | None:
        """What the device should run next; a weight pass yields to what can start soon after it could."""
        candidates = [c for s in self.problem.placement.stages_of[device] for c in self._ready(s)]
        weights = [c for c in candidates if c.of.kind is W]
        urgent = min((c for c in candidates if c.of.kind is not W), default=None)
        weight = min(weights, default=None)
        if weight is None or urgent is None:
            return urgent or weight
        patience = self.problem.duration(weight.of) * self.policy.patience // 100
        return urgent if urgent.start <= weight.start + patience else weight

    def _ready(self, stage: int) -> Iterator[ReadyPass]:
        """The passes of a stage whose needs have been put and that memory has room for."""
        for rank, kind in enumerate(self.kinds):
            j = self.next[kind, stage]
            if j in self.problem.microbatches_of[stage]:
                p = Pass(kind, stage, j)
                start = self._start(p)
                if start is not None and self._fits(p):
                    deepest = kind is F and self.policy.deepest_first
                    yield ReadyPass(start, rank, -stage if deepest else j, p)

    def _start(self, p: Pass) -> int | None:
        """When p could start; None while something it needs has not been put."""
        start = self.free_at[self.problem.device(p)]
        for before, lag in self.problem.network.predecessors(p, self.ends):
            if before not in self.ends:
                return None
            start = max(start, self.ends[before] + lag)
        return start

    def _fits(self, p: Pass) -> bool:
        device = self.problem.device(p)
        capacity = self.problem.room[device]
        if capacity is None:
            return True
        room = capacity - self.held[device] - self.problem.network.change[p.kind, p.stage].at_start
        if p.kind is not F or room < 0:
            return room >= 0
        ways = self.under_way[device]
        for j in sorted({*ways, p.microbatch}):  # oldest first; each gives back what it holds when it ends
            way = ways.get(j) or _UnderWay(0, self._yet_to_take(device, j))
            taken = self.problem.network.held_in_flight[p.stage] if j == p.microbatch else 0
            if room < way.needed - taken:
                return False
            room += way.held + taken
        return True

    def _yet_to_take(self, device: int, j: int) -> int:
        """What a micro-batch that is not under way takes on a device: nothing once it has been."""
        if j in self.begun[device]:
            return 0
        where = self.problem.placement.stage_device
        return sum(self.problem.network.held_in_flight[s] for s in self.problem.chain_of(j) if where[s] == device)

    def _put(self, p: Pass) -> None:
        device, start = self.problem.device(p), self._start(p)
        assert start is not None
        self.free_at[device] = self.ends[p] = start + self.problem.duration(p)
        change = self.problem.network.change[p.kind, p.stage].total
        self.held[device] += change
        ways = self.under_way[device]
        way = ways.setdefault(p.microbatch, _UnderWay(0, self._yet_to_take(device, p.microbatch)))
        self.begun[device].add(p.microbatch)
        way.held += change
        if p.kind is F:
            way.needed -= change
        if way.held == way.needed == 0:
            del ways[p.microbatch]
        self.next[p.kind, p.stage] += 1
        self.done[device].append(p)
