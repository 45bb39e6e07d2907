"""One run of the list scheduler under one policy: what each device runs next, until all has run."""

from __future__ import annotations

from collections import deque
from itertools import product
from typing import NamedTuple

from pipesched.problem.mode_gains import saved_by_block, saved_by_fusing
from pipesched.problem.passes import BW, B, F, Pass, PassKind, Slot, W
from pipesched.problem.problem import Problem
from solver.bounds.analytic.integral_warmup import warm_up_forwards
from solver.construction.in_flight_shares import in_flight_shares
from solver.construction.memory_room import Room
from solver.construction.policy import Policy


class ReadySlot(NamedTuple):
    """What could run next; candidates compare by what should go first."""

    start: int
    rank: int
    tie: int
    of: Slot


class Run:
    """One run under one policy."""

    def __init__(self, problem: Problem, policy: Policy) -> None:
        self.problem, self.policy, self.room = problem, policy, Room(problem)
        self._splits = policy.split and problem.splittable
        devices, stages = range(problem.devices), range(problem.placement.stages)
        self.done: list[list[Slot]] = [[] for _ in devices]
        self.free_at = [0] * problem.devices
        self.ends: dict[Pass, int] = {}
        activation = problem.network.held_in_flight
        self._largest = [max((activation[s] for s in held), default=0) for held in problem.placement.stages_of]
        self._most = in_flight_shares(problem) if policy.shares else {}
        self._warm_up = warm_up_forwards(problem) if policy.warm_up else {}
        # Off for one step where nothing else could run.
        self._restrains = policy.spare or policy.shares or policy.warm_up
        self._restrained = self._restrains
        # Passes of one role run in micro-batch order on each stage.
        self.next = {(role, s): problem.microbatches_of[s].start for role in (F, B) for s in stages}
        # Where the order of micro-batches is fixed, those of one queue of stages do too.
        self.turn = {(role, queue): 0 for role in (F, B) for queue in problem.queues}
        walked = list(zip(problem.queues, problem.microbatches_of, strict=bool(problem.queues)))
        self.order = {q: sorted(j for queue, held in walked if queue == q for j in held) for q in problem.queues}
        self.weights: list[deque[int]] = [deque() for _ in stages]
        self.best: list[ReadySlot | None] = [self._best(d) for d in devices]

    def orders(self) -> list[list[Slot]] | None:
        """The order of every device; None if memory locks."""
        left = sum(len(self.problem.microbatches_of[s]) for _, s in self.next)
        sign = -1 if self.policy.later_devices_first else 1
        where, devices = self.problem.placement, range(self.problem.devices)
        while True:
            choices = [(c.start, sign * d, c.of) for d, c in enumerate(self.best) if c is not None]
            if not choices and self._restrained and left:
                # It takes the memory that was kept to go on.
                self._restrained = False
                self.best = [self._best(d) for d in devices]
                continue
            if not choices:
                return None if left else self.done
            _, _, slot = min(choices)
            self._put(slot)
            left -= sum(p.kind is not W for p in slot)
            near = {s for p in slot for s in (p.stage, where.previous[p.stage], where.next[p.stage])}
            changed = {where.stage_device[s] for s in near if s is not None}
            if self._restrained is not self._restrains:
                self._restrained, changed = True, set(devices)
            for device in changed:
                self.best[device] = self._best(device)

    def _best(self, device: int) -> ReadySlot | None:
        """What the device should run next; a weight pass yields to what can start soon after it could."""
        stages = self.problem.placement.stages_of[device]
        backwards = [c for c in map(self._backward, stages) if c is not None]
        forwards = [c for c in map(self._forward, stages) if c is not None]
        alone = forwards
        if self.policy.spare and self._restrained:
            alone = [c for c in forwards if self.room.fits(c.of[0], self._largest[device])]
        urgent = min((*backwards, *alone), default=None)
        if self.policy.blocks is not None and backwards and forwards:
            urgent = self._with_blocks(backwards, forwards, urgent)
        weight = min((c for c in map(self._weight, stages) if c is not None), default=None) if self._splits else None
        if weight is None or urgent is None:
            return urgent or weight
        patience = self.problem.duration(weight.of[0]) * self.policy.patience // 100
        return urgent if urgent.start <= weight.start + patience else weight

    def _with_blocks(
        self, backwards: list[ReadySlot], forwards: list[ReadySlot], alone: ReadySlot | None
    ) -> ReadySlot | None:
        """The first block, if it starts soon enough after what would run alone."""
        assert self.policy.blocks is not None
        found: list[tuple[ReadySlot, int]] = []
        for f, b in product(forwards, backwards):
            forward, whole = f.of[0], b.of[0]._replace(kind=BW)
            saved = saved_by_block(self.problem, forward.stage, whole.stage)
            if saved > 0:
                tie = 0 if self.policy.deepest_first else f.tie
                found.append((ReadySlot(max(f.start, b.start), b.tie, tie, (forward, whole)), saved))
        if not found:
            return alone
        block, saved = min(found, key=lambda one: (one[0].start, -one[1], one[0]))
        if alone is None:
            return block
        taken = {(p.stage, p.microbatch) for p in block.of}
        fills_gap = (alone.of[0].stage, alone.of[0].microbatch) not in taken and self._end(alone) <= block.start
        return block if not fills_gap and block.start <= alone.start + saved * self.policy.blocks // 100 else alone

    def _end(self, slot: ReadySlot) -> int:
        return slot.start + self.problem.duration(slot.of[0])

    def _waits_for_turn(self, role: PassKind, stage: int, j: int) -> bool:
        """Whether the order of micro-batches is fixed and another is next."""
        if not self.turn:
            return False
        queue = self.problem.queues[stage]
        order, done = self.order[queue], self.turn[role, queue]
        return done >= len(order) or order[done] != j

    def _forward(self, stage: int) -> ReadySlot | None:
        """The next forward of a stage, if what it needs has been put and memory has room for it."""
        j = self.next[F, stage]
        if j not in self.problem.microbatches_of[stage] or self._waits_for_turn(F, stage, j):
            return None
        if self._restrained and j - self.next[B, stage] >= self._most.get(stage, j + 1):
            return None
        if self._warms_up(stage) and self._begun(stage) >= self._warm_up[stage]:
            return None
        p = Pass(F, stage, j)
        start = self._start(p)
        if start is None or not self.room.fits(p):
            return None
        return ReadySlot(start, 1, -stage if self.policy.deepest_first else j, (p,))

    def _backward(self, stage: int) -> ReadySlot | None:
        """The next backward of a stage, in the mode it would run in alone."""
        j = self.next[B, stage]
        if j >= self.next[F, stage] or self._waits_for_turn(B, stage, j):
            return None
        if self._warms_up(stage) and self._begun(stage) < self._warm_up[stage]:
            return None
        p = Pass(B if self._splits else BW, stage, j)
        start = self._start(p)
        if start is None:
            return None
        if self.policy.fuse and self._fuses(p, start):
            p = Pass(BW, stage, j)
        return ReadySlot(start, 0, j, (p,)) if self.room.fits(p) else None

    def _warms_up(self, stage: int) -> bool:
        """Whether a stage has run no backward yet and the number of forwards before it is fixed."""
        first = self.problem.microbatches_of[stage].start
        return self._restrained and self._warm_up.get(stage, 0) > 0 and self.next[B, stage] == first

    def _begun(self, stage: int) -> int:
        return self.next[F, stage] - self.problem.microbatches_of[stage].start

    def _weight(self, stage: int) -> ReadySlot | None:
        """The next weight pass of a stage that runs one."""
        if not self.weights[stage]:
            return None
        p = Pass(W, stage, self.weights[stage][0])
        start = self._start(p)
        return None if start is None or not self.room.fits(p) else ReadySlot(start, 2, p.microbatch, (p,))

    def _fuses(self, p: Pass, start: int) -> bool:
        """Whether a full backward that starts then saves more time than the gradient's device waits for it longer."""
        saved = saved_by_fusing(self.problem, p.stage)
        if saved <= 0:
            return False
        before = self.problem.placement.previous[p.stage]
        if before is None:
            return True
        arrives = start + self.problem.lag(p.stage, before)
        whole, split = (arrives + self.problem.duration(p._replace(kind=kind)) for kind in (BW, B))
        free = self.free_at[self.problem.placement.stage_device[before]]
        return max(0, whole - max(free, split)) < saved

    def _start(self, p: Pass) -> int | None:
        """When p could start; None while something it needs has not been put."""
        start = self.free_at[self.problem.device(p)]
        if p.kind is B and not self.problem.splittable:
            p = p._replace(kind=BW)
        for before, lag in self.problem.network.predecessors(p, self.ends):
            if before not in self.ends:
                return None
            start = max(start, self.ends[before] + lag)
        return start

    def _put(self, slot: Slot) -> None:
        starts = [self._start(p) for p in slot]
        start = max(start for start in starts if start is not None)
        device = self.problem.device(slot[0])
        block = self.problem.overlapped_ticks(slot[0], slot[1]) if len(slot) == 2 else None
        end = start + (self.problem.duration(slot[0]) if block is None else block)
        self.free_at[device] = end
        for p in slot:
            self.ends[p] = end
            self.room.put(p)
            if p.kind is W:
                self.weights[p.stage].popleft()
                continue
            role = F if p.kind is F else B
            self.next[role, p.stage] += 1
            if self.turn:
                self.turn[role, self.problem.queues[p.stage]] += 1
            if p.kind is B:
                self.weights[p.stage].append(p.microbatch)
        self.done[device].append(slot)
