"""Conversion of a beam search's moves to a schedule, with the weight passes between."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipesched.problem.passes import BW, B, F, Pass, Slot, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.schedule import Schedule
from solver.beam.nodes import at_first, offsets, take
from solver.beam.tables import Step, StepTables, steps_of_chains
from solver.diagram.steps import StepId


def schedule_of_moves(problem: Problem, tables: StepTables, moves: Sequence[tuple[StepId, StepId, int]]) -> Schedule:
    """Return the schedule in which all devices run the given moves: (step, gradient in a block with it or -1, delay).

    `delay` is 1 if the move waits for one more pending weight pass of its device, else 0. Weight passes are added where
    the moves run them; those pending after all moves end the orders of their devices, those of longest duration first.
    """
    steps = steps_of_chains(problem)
    _, _, waiting, _, _ = offsets(tables)
    row = at_first(tables)
    orders: list[list[Slot]] = [[] for _ in range(problem.devices)]
    weights = [0] * len(steps)
    blocked: dict[int, set[int]] = {at: set() for at in range(len(steps))}

    def run_weights(counts: np.ndarray, device: DeviceId) -> None:
        """Append to the device's order `counts[step]` weight passes of each gradient step.

        Those of longest duration come first. Micro-batches whose backward ran in a block have none and are skipped.
        """
        for step in tables.waits[tables.since[device] : tables.since[device + 1]]:
            for _ in range(counts[step]):
                while weights[step] in blocked[int(step)]:
                    weights[step] += 1
                orders[device].append((_pass(problem, steps[step], weights[step], weight=True),))
                weights[step] += 1

    for step, mate, delay in moves:
        device, before = int(tables.device[step]), row[waiting : waiting + len(steps)].copy()
        number, other = int(row[step]), int(row[mate])
        take(row, step, mate, delay, tables)
        ran = before - row[waiting : waiting + len(steps)]
        ran[step] += tables.weight[step] > 0
        run_weights(ran, device)
        if mate < 0:
            orders[device].append((_pass(problem, steps[step], number),))
        else:
            blocked[mate].add(other)
            backward = problem.microbatches_of[steps[mate].stage][other]
            orders[device].append((_pass(problem, steps[step], number), Pass(BW, steps[mate].stage, backward)))
    for device in range(problem.devices):
        run_weights(row[waiting : waiting + len(steps)], device)
    return Schedule(tuple(map(tuple, orders)), "pipesched")


def _pass(problem: Problem, step: Step, number: int, weight: bool = False) -> Pass:
    """Return the pass of a step for the micro-batch with index `number` on the step's stage.

    With `weight`, its weight pass.
    """
    microbatch = problem.microbatches_of[step.stage][number]
    # A weight pass without duration, as `StepTables` has none for it, is part of a full backward.
    whole = not problem.pipeline.ticks.get((W, step.stage))
    return Pass(W if weight else F if not step.gradient else BW if whole else B, step.stage, microbatch)
