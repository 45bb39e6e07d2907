"""What is left to choose besides the order of steps: which forward and gradient of a device run as one block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem
from solver.bounds.crossing_steps.steps import Numbers


def block_ticks(problem: Problem, chain: Sequence[int], devices: Sequence[int]) -> Numbers:
    """By the step of a forward and that of a gradient, the ticks of their block; -1 where there is none."""
    where = problem.placement.stage_device
    kept = [stage for stage in chain if where[stage] in devices]
    found = np.full((2 * len(kept), 2 * len(kept)), -1, np.int64)
    for one, forward in enumerate(kept):
        for other, backward in enumerate(reversed(kept), len(kept)):
            if where[forward] == where[backward]:
                ticks = problem.overlapped_ticks(Pass(F, forward, 0), Pass(BW, backward, 0))
                found[one, other] = -1 if ticks is None else ticks
    return found
