"""Conversion of an order of steps to a schedule: step by step, with the weight passes that run before each step."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MicrobatchId
from pipesched.schedule.schedule import Schedule, schedule_of
from solver.diagram.moves import may_wait
from solver.diagram.steps import Numbers
from solver.step_orders.search import Diagram, Taken
from solver.step_orders.weights import advance_whole, settle, splits


def schedule_with(problem: Problem, diagram: Diagram, order: Sequence[Taken]) -> Schedule | None:
    """Return the schedule of an order of steps, or None if it exceeds the memory.

    That happens because the search counts each waiting weight pass with the least memory that one of its device takes.
    """
    run = _Run(problem, diagram)
    for taken in order:
        run.take(taken)
    orders = run.orders_to_the_end()
    return schedule_of(orders, "pipesched") if run.fits else None


class _Run:
    """Replay of an order of steps: the label that it leads to, and the orders of passes on all devices so far.

    `fits` is False once some device's memory is exceeded.
    """

    def __init__(self, problem: Problem, diagram: Diagram) -> None:
        self._problem, (self._chain, steps, self._weights, _) = problem, diagram
        self._steps = steps
        size = steps.slots + 3 * len(steps.room)
        self._label = np.zeros(size + len(self._weights.ticks), np.int64)
        self._waits = self._label[size:]
        self._ran = np.zeros(len(steps.ticks), np.int64)  # how many micro-batches have done each step
        self._memory_in_use = [0] * problem.devices
        self._next: dict[tuple[bool, int], int] = {}  # by whether it is a forward, and stage
        self._open: dict[int, deque[int]] = {stage: deque() for stage in self._chain}  # whose weight passes wait
        self._orders: list[list[Pass]] = [[] for _ in range(problem.devices)]
        self.fits = True

    def take(self, taken: Taken) -> None:
        """Run a step for the next micro-batch that has not done it, after the weight passes that precede it."""
        steps, ran, half, step = self._steps, self._ran, len(self._weights.ticks), taken.step
        pending, waited = may_wait(steps, ran.tolist(), step), self._waits.copy()
        advance_whole(self._label, ran, step, pending, taken.delay, taken.full, steps, self._weights)
        if step < half:
            self._run_weights(waited - self._waits)
            self._run(F, step)
        else:
            self._run_backward(step - half, taken.full, waited)
        ran[step] += 1
        settle(self._label, ran, steps)

    def orders_to_the_end(self) -> list[list[Pass]]:
        """Return the order of passes on every device, after appending the weight passes that still wait."""
        self._run_weights(self._waits)
        return self._orders

    def _run_backward(self, number: int, full: bool, waited: Numbers) -> None:
        """Run the backward of step `number` (counted from the first backward), after the weight passes due before it.

        With `full` it is BW, else B. `waited` are the weight passes that waited before. A W of length 0 runs directly
        after its backward.
        """
        weights, place = self._weights, len(self._waits) - 1 - number
        split = not full and splits(self._problem, self._chain[place])
        own = (np.arange(len(self._waits)) == number).astype(np.int64) * split
        waits = weights.ticks[number] > 0
        self._run_weights(waited + own * waits - self._waits)
        self._run(B if split else BW, place)
        self._run_weights(own * (not waits))

    def _run_weights(self, counts: Numbers) -> None:
        """Run `counts[n]` weight passes of the stage of backward step n, for all n, longest weight passes first."""
        for weight in self._weights.of:
            stage = self._chain[len(counts) - 1 - weight]
            for _ in range(counts[weight]):
                self._put(W, stage, self._open[stage].popleft())

    def _run(self, kind: PassKind, place: int) -> None:
        """Append the next F, B or BW of the stage at a place of the chain to its device's order."""
        stage = self._chain[place]
        microbatch = self._next.get((kind is F, stage), self._problem.microbatches_of[stage].start)
        self._next[kind is F, stage] = microbatch + 1
        if kind is B:
            self._open[stage].append(microbatch)
        self._put(kind, stage, microbatch)

    def _put(self, kind: PassKind, stage: int, microbatch: MicrobatchId) -> None:
        device = self._problem.placement.stage_device[stage]
        room, change = self._problem.room[device], self._problem.network.change[kind, stage]
        self.fits = self.fits and (room is None or self._memory_in_use[device] + change.at_start <= room)
        self._memory_in_use[device] += change.total
        self._orders[device].append(Pass(kind, stage, microbatch))
