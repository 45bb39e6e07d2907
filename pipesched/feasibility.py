"""Whether a problem has any schedule at all; if not, the device and the rule that forbid it."""

from __future__ import annotations

from pipesched.amounts import memory_amount
from pipesched.problem import Problem


def why_infeasible(problem: Problem) -> str | None:
    """The reason no schedule fits the memory, or None if one does.

    Necessary: before a micro-batch's first backward on a device ends, all its forwards on that device have run, so
    the device holds all their activations at once. Sufficient: one micro-batch after the other, each backward fused,
    never holds more than that. So the answer is exact.
    """
    for device, capacity in enumerate(problem.memory.capacity):
        for chain in problem.placement.chains:
            stages = [s for s in chain if problem.placement.stage_device[s] == device and problem.microbatches_of[s]]
            needed = sum(problem.memory.activation[s] for s in stages)
            if capacity is not None and needed > capacity:
                need, have = memory_amount(problem, needed), memory_amount(problem, capacity)
                unit = problem.memory.unit
                return (
                    f"memory: device {device} must hold the activations of stages "
                    f"{', '.join(map(str, stages))} of one micro-batch at once, {need} {unit}; "
                    f"its capacity is {have}"
                )
    return None
