"""The schedule that an order of steps with whole weight passes stands for: its choices once more, pass by pass."""

from __future__ import annotations

import numpy as np

from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of
from solver.diagram.steps import Numbers
from solver.diagram.whole_weights.bound import Orders
from solver.diagram.whole_weights.choices import advance, next_choice, ready_at, settle
from solver.diagram.whole_weights.weights import weights_of


def schedule_of_whole(problem: Problem, found: Orders) -> Schedule | None:
    """None where no order ends below the value, where devices are left out, or where memory does not hold it."""
    kept = found.kept
    if found.least.order is None or kept.stages != kept.chain or len([*problem.placement.chains]) > 1:
        return None
    run = _Run(problem, found)
    for taken in found.least.order:
        run.take(*divmod(taken, len(found.kept.steps.ticks)))
    orders = run.orders_to_the_end()
    return schedule_of(orders, "pipesched") if run.fits else None


class _Run:
    """One label and the choices that it takes, with the orders of all devices so far."""

    def __init__(self, problem: Problem, found: Orders) -> None:
        self._problem, self._chain, self._steps = problem, found.kept.chain, found.kept.steps
        self._weights = weights_of(found.kept.steps)
        size = found.kept.steps.in_flight + 2 * len(found.kept.steps.room)
        self._label = np.zeros(size + len(self._weights.ticks), np.int64)
        self._waits = self._label[size:]
        self._waiting: list[list[int]] = [[] for _ in self._waits]  # stages whose weight passes wait, by kind
        self._at: list[int] = []  # how many steps each micro-batch in flight has done
        self._begun, self._held = 0, [0] * problem.devices
        self._next: dict[tuple[PassKind, int], int] = {}
        self._orders: list[list[Pass]] = [[] for _ in range(problem.devices)]
        self.fits = True

    def take(self, choice: int, step: int) -> None:
        """Run the next micro-batch's step, after weight passes: the choice of that number."""
        steps, at, weights, count = self._steps, self._at, self._weights, len(self._steps.ticks)
        one, begins = (len(at), True) if step == 0 else (at.index(step), False)
        ran, device = np.zeros_like(self._waits), steps.device[step]
        for _ in range(choice):
            since = len(self._label) - len(ran)
            next_choice(ran, self._label, since, weights.first[device], weights.first[device + 1])
        ready = ready_at(self._label, one, step, steps, not begins)
        advance(self._label, ran, one, step, ready, -1, steps, weights)
        self._run_weights(ran)
        stage = self._chain[step if 2 * step < count else count - 1 - step]
        if 2 * step < count:
            self._put(F, stage)
        else:
            self._put(B if self._problem.splittable else BW, stage)
            if weights.kind[step] >= 0:
                self._waiting[weights.kind[step]].append(stage)
            elif self._problem.splittable:
                self._put(W, stage)
        self._begun += begins
        at[one : one + 1] = [step + 1]
        through = at[0] == count
        del at[: 1 if through else 0]
        if at or self._begun < steps.microbatches:
            before = self._waits.copy()
            settle(self._label, through, self._padded(), len(at), self._begun < steps.microbatches, steps, weights)
            self._run_weights(before - self._waits)

    def orders_to_the_end(self) -> list[list[Pass]]:
        """The order of every device, with all weight passes."""
        self._run_weights(self._waits)
        return self._orders

    def _padded(self) -> Numbers:
        return np.array([*self._at, *[0] * (self._steps.in_flight + 1 - len(self._at))], np.int64)

    def _run_weights(self, counts: Numbers) -> None:
        """So many of each kind, those that have waited longest."""
        for stages, many in zip(self._waiting, counts, strict=True):
            for stage in stages[:many]:
                self._put(W, stage)
            del stages[:many]

    def _put(self, kind: PassKind, stage: int) -> None:
        """The next pass of a kind of a stage."""
        device = self._problem.placement.stage_device[stage]
        microbatch = self._next.get((kind, stage), self._problem.microbatches_of[stage].start)
        self._next[kind, stage] = microbatch + 1
        room, change = self._problem.room[device], self._problem.network.change[kind, stage]
        self.fits = self.fits and (room is None or self._held[device] + change.at_start <= room)
        self._held[device] += change.total
        self._orders[device].append(Pass(kind, stage, microbatch))
