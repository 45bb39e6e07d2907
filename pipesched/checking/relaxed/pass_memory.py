"""Argument: workspace needs memory in addition to activations, and memory kept until the end is never freed."""

from __future__ import annotations

from dataclasses import replace

from pipesched.checking.relaxed.taken_by_modes import taken_by_modes
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.problem import Problem
from pipesched.problem.stage import PassMemory


def without_pass_memory(problem: Problem) -> Problem:
    """Return the problem without workspace and without memory kept until the end; it must have no gathers.

    Activations on a device grow only when a forward starts, or a backward that takes more. Then all activations are
    there together with the workspace of that pass, so they stay within the memory less the smallest workspace of such a
    pass. The memory of a device is not reduced if any copy or recomputation takes some of it (`taken_by_modes`), since
    activations then also grow without workspace.
    """
    if all(stage.workspace == stage.until_end == PassMemory() for stage in problem.stages):
        return problem
    pools = []
    for device, pool in enumerate(problem.pools):
        stages_of_device = [
            problem.stages[s] for s in problem.placement.stages_of[device] if len(problem.microbatches_of[s])
        ]
        rising = [s.workspace.forward for s in stages_of_device if s.activation or s.kv_cache.taken]
        rising += [s.workspace.backward for s in stages_of_device if s.weight is not None and s.freed < 0]
        if taken_by_modes(problem, device):
            rising = []
        least = min(rising, default=0)
        pools.append(pool if pool.capacity is None else Pool(pool.capacity - least, pool.static))
    stages = tuple(replace(stage, workspace=PassMemory(), until_end=PassMemory()) for stage in problem.stages)
    return replace(problem, stages=stages, pools=tuple(pools))
