"""Schedules with a given order of steps: weight passes are put where there is time, or where memory needs them."""

from __future__ import annotations

from collections.abc import Sequence

from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of
from solver.step_orders.search import Taken


def schedule_with(problem: Problem, chain: Sequence[int], order: Sequence[Taken], share: float) -> Schedule | None:
    """A weight pass runs where this share of it ends before the next step could start: that which fits best.

    None where memory does not hold it.
    """
    run = _Run(problem, chain)
    for taken in order:
        run.take(taken, share)
    orders = run.orders_to_the_end()
    return schedule_of(orders, "pipesched") if run.fits else None


class _Run:
    """Devices at work: when each is free, what it holds, and which weight passes wait there."""

    def __init__(self, problem: Problem, chain: Sequence[int]) -> None:
        self._problem, self._ways = problem, (*chain, *reversed(chain))
        self.fits, devices = True, problem.devices
        self._free, self._held = [0] * devices, [0] * devices
        self._waiting: list[list[Pass]] = [[] for _ in range(devices)]
        self._orders: list[list[Pass]] = [[] for _ in range(devices)]
        self._ends: dict[tuple[int, int], int] = {}
        self._next = [problem.microbatches_of[chain[0]].start] * len(self._ways)

    def take(self, taken: Taken, share: float) -> None:
        """Run the next micro-batch's step, after the weight passes that come before it."""
        problem, step, stage = self._problem, taken.step, self._ways[taken.step]
        microbatch, device = self._next[step], problem.placement.stage_device[stage]
        self._next[step] += 1
        ready = self._ready(step, microbatch)
        forward = 2 * step < len(self._ways)
        room, takes = problem.room[device], problem.stages[stage].activation
        while forward and room is not None and self._waiting[device] and self._held[device] + takes > room:
            self._run_weight(device, ready)
        waiting = self._waiting[device]
        while waiting and ready - self._free[device] >= share * min(map(problem.duration, waiting)):
            self._run_weight(device, ready)
        for _ in range(min(taken.delay, len(waiting))):
            self._run_weight(device, ready)
        p = Pass(F if forward else B if problem.splittable else BW, stage, microbatch)
        self._ends[step, microbatch] = self._put(device, p, ready)
        if p.kind is B:
            waiting.append(Pass(W, stage, microbatch))

    def orders_to_the_end(self) -> list[list[Pass]]:
        """The order of every device, with all weight passes."""
        for device, waiting in enumerate(self._waiting):
            while waiting:
                self._run_weight(device, 0)
        return self._orders

    def _ready(self, step: int, microbatch: int) -> int:
        if step == 0:
            return 0
        before, stage = self._ways[step - 1], self._ways[step]
        return self._ends[step - 1, microbatch] + self._problem.lag(before, stage)

    def _run_weight(self, device: int, until: int) -> None:
        """The longest that ends by then, or the shortest of all."""
        waiting, ticks = self._waiting[device], self._problem.duration
        fitting = [p for p in waiting if self._free[device] + ticks(p) <= until]
        p = max(fitting, key=ticks) if fitting else min(waiting, key=ticks)
        waiting.remove(p)
        self._put(device, p, 0)

    def _put(self, device: int, p: Pass, ready: int) -> int:
        """Run a pass; its end."""
        room, change = self._problem.room[device], self._problem.network.change[p.kind, p.stage]
        self.fits = self.fits and (room is None or self._held[device] + change.at_start <= room)
        self._free[device] = max(self._free[device], ready) + self._problem.duration(p)
        self._held[device] += change.total
        self._orders[device].append(p)
        return self._free[device]
