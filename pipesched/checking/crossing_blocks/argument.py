"""Argument: as for crossings of steps, where a forward and a full backward of a device may also run as one block.

Both passes of a block run from its start to its end, and what the backward gives back is there at the end, not before
the forward. If micro-batches exchange their names on each stage by the order in which they run there, blocks stay where
they are. The two passes of a block are of two micro-batches, since a gradient waits for its own forward.
"""

from __future__ import annotations

import numpy as np

from pipesched.checking.crossing_steps.argument import Numbers, chain_of, way_on
from pipesched.checking.finding import NotCoveredError
from pipesched.problem.problem import Objective, Problem
from pipesched.results.crossing_evidence import CrossingBlocks


def crossings_with_blocks(problem: Problem, evidence: CrossingBlocks) -> int:
    """The least end over all orders and blocks; where many have come equally far, near ones count as one no later."""
    from pipesched.checking.crossing_blocks.orders import least_end_with_blocks

    chain = chain_of(problem, evidence.stage, evidence.devices)
    if not problem.network.one_task_each or problem.network.options:
        raise NotCoveredError("a pass is several tasks")
    way = way_on(problem, chain, evidence.devices, evidence.width)
    kept = [stage for stage in chain if problem.placement.stage_device[stage] in evidence.devices]
    return least_end_with_blocks(
        way, block_ticks(problem, kept), evidence.width, problem.objective is Objective.MAKESPAN
    )


def block_ticks(problem: Problem, down: list[int]) -> Numbers:
    """What the block of a forward and a gradient takes, by their steps; -1 where they run one after the other."""
    where, back = problem.placement.stage_device, down[::-1]
    found = np.full((len(down), 2 * len(down)), -1, np.int64)
    for n, forward in enumerate(down):
        ticks = problem.stages[forward].overlapped
        for g, gradient in enumerate(back):
            if ticks is not None and where[forward] == where[gradient]:
                found[n, len(down) + g] = ticks
    return found
