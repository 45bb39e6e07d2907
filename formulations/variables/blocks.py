"""Overlapped blocks that a model may choose: a forward and a full backward on one device that run as one task."""

from __future__ import annotations

from collections.abc import Iterator

from formulations.variables.known_order import KnownOrder
from formulations.variables.operations import Operation, Operations
from formulations.variables.resource_order import Pair
from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.passes import B, F
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId


def blocks_that_gain(operations: Operations, known: KnownOrder, devices: set[DeviceId]) -> Iterator[Pair]:
    """Yield the (forward, backward) pairs on these devices whose overlapped block may improve a schedule.

    Each pass must be one task. Other blocks end nothing sooner: the order of the two passes must be open, and the block
    shorter than the two in sequence. A backward whose B and W are never worse than the full backward is in none of
    them.
    """
    problem = operations.jobs.problem
    for here in operations.on.values():
        backwards = [x for x in here if x.role is B and not fused_is_dominated(problem, x.stage)]
        for forward in here:
            if forward.role is F and operations.device(forward) in devices:
                mates = (x for x in backwards if _gains(problem, forward, x) and not known.knows(forward, x))
                yield from ((forward, x) for x in mates)


def _gains(problem: Problem, forward: Operation, backward: Operation) -> bool:
    return problem.pipeline.saved_by_block(forward.stage, backward.stage) > 0
