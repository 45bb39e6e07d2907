"""The schedule that an order of steps stands for: its steps once more, with the weight passes that run before each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of
from solver.bounds.crossing_steps.layers import _pending
from solver.bounds.crossing_steps.steps import Numbers, Steps
from solver.step_orders.search import Taken, devices_of
from solver.step_orders.weights import advance_whole, settle, weights_of


def schedule_with(problem: Problem, chain: Sequence[int], steps: Steps, order: Sequence[Taken]) -> Schedule | None:
    """None where memory does not hold it: stages of one device may take more of it than the least one."""
    run = _Run(problem, chain, steps)
    for taken in order:
        run.take(taken)
    orders = run.orders_to_the_end()
    return schedule_of(orders, "pipesched") if run.fits else None


class _Run:
    """One label and the steps that it takes, with the orders of all devices so far."""

    def __init__(self, problem: Problem, chain: Sequence[int], steps: Steps) -> None:
        self._problem, self._chain, self._steps, self._weights = problem, chain, steps, weights_of(steps)
        self._devices = devices_of(problem, chain)
        size = steps.in_flight + 3 * len(steps.room)
        self._label = np.zeros(size + len(self._weights.ticks), np.int64)
        self._waits = self._label[size:]
        self._at: list[int] = []  # how many steps each micro-batch in flight has done
        self._begun, self._held = 0, [0] * problem.devices
        self._next: dict[tuple[PassKind, int], int] = {}
        self._orders: list[list[Pass]] = [[] for _ in range(problem.devices)]
        self.fits = True

    def take(self, taken: Taken) -> None:
        """Run the next micro-batch's step, after the weight passes that come before it."""
        steps, at, half, step = self._steps, self._at, len(self._weights.ticks), taken.step
        one, begins = (len(at), True) if step == 0 else (at.index(step), False)
        pending, waited = _pending(steps, self._padded(), len(at), one, step), self._waits.copy()
        advance_whole(self._label, one, step, pending, taken.delay, steps, self._weights, not begins)
        if step < half:
            self._run_weights(waited - self._waits)
            self._put(F, step)
        else:
            own = (np.arange(half) == step - half).astype(np.int64)
            waits = self._weights.ticks[step - half] > 0
            self._run_weights(waited + own * waits - self._waits)
            self._put(B if self._problem.splittable else BW, 2 * half - 1 - step)
            self._run_weights(own * int(self._problem.splittable and not waits))
        self._begun += begins
        at[one : one + 1] = [step + 1]
        through = at[0] == 2 * half
        del at[: 1 if through else 0]
        if at or self._begun < steps.microbatches:
            settle(self._label, through, self._padded(), len(at), self._begun, steps)

    def orders_to_the_end(self) -> list[list[Pass]]:
        """The order of every device, with all weight passes."""
        self._run_weights(self._waits)
        return self._orders

    def _padded(self) -> Numbers:
        return np.array([*self._at, *[0] * (self._steps.in_flight + 1 - len(self._at))], np.int64)

    def _run_weights(self, counts: Numbers) -> None:
        """So many of each gradient's stage, the longest first."""
        for weight in self._weights.of:
            for _ in range(counts[weight]):
                self._put(W, len(counts) - 1 - weight)

    def _put(self, kind: PassKind, place: int) -> None:
        """The next pass of a kind of the stage at a place of the chain."""
        stage = self._chain[place]
        device = self._problem.placement.stage_device[stage]
        microbatch = self._next.get((kind, stage), self._problem.microbatches_of[stage].start)
        self._next[kind, stage] = microbatch + 1
        room, change = self._problem.room[device], self._problem.network.change[kind, stage]
        self.fits = self.fits and (room is None or self._held[device] + change.at_start <= room)
        self._held[device] += change.total
        self._orders[device].append(Pass(kind, stage, microbatch))
