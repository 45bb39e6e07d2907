"""Feasibility: whether a problem has any schedule, and whether sums of its times fit into 64 bits."""

from __future__ import annotations

from math import ceil

from pipesched.errors import BadInput
from pipesched.int64_arrays import LARGEST
from pipesched.problem.chains.chain_groups import chain_groups
from pipesched.problem.formatting import memory_text
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import numbers_of


def refuse_overflow(problem: Problem) -> None:
    """`BadInput` where all passes and transfers in turn take more ticks, or memory, than solvers can add up.

    No problem read from a file does; one made in Python may.
    """
    farthest = max((lag for row in problem.links for lag in row), default=0)
    largest = ceil(max(problem.microbatch_scale, default=1))
    ticks = (
        problem.microbatches
        * largest
        * sum(
            stage.forward + max(stage.backward + (stage.weight or 0), stage.fused) + 2 * (stage.transfer + farthest)
            for stage in problem.stages
        )
    )
    if ticks > LARGEST:
        raise BadInput(
            f"{problem.name}: times: found {ticks:.1e} ticks in all; allowed: up to {LARGEST:.1e}: a larger tick, "
            "or smaller times"
        )
    held = problem.microbatches * largest * sum(abs(one) for stage in problem.stages for one in numbers_of(stage)[1])
    ample = max((room or 0 for room in problem.room), default=0)
    if max(held, ample) > LARGEST:
        raise BadInput(
            f"{problem.name}: memory: found {float(held):.1e} units in all activations, and capacities of up to "
            f"{float(ample):.1e}; allowed: up to {LARGEST:.1e}: a larger unit, or less memory"
        )


def why_infeasible(problem: Problem) -> str | None:
    """The reason no schedule fits the memory, or None if one does.

    Necessary: before a micro-batch's first backward on a device ends, all its forwards on that device have run, and
    those that feed it, so the device holds all their activations at once. Sufficient: one micro-batch after the other,
    each backward fused, never holds more than that. So the answer is exact, but for the host's memory where activations
    may move there: a stage then holds of a micro-batch what it must until its backward, and all of its activation while
    it runs.
    """
    unequal, groups = bool(problem.microbatch_scale), chain_groups(problem)
    for device, capacity in enumerate(problem.room):
        for group in groups:
            chain = [stage for n in group for stage in problem.placement.chains[n]]
            stages = [s for s in chain if problem.placement.stage_device[s] == device and problem.microbatches_of[s]]
            largest = (
                max((problem.microbatch_scale[j] for n in group for j in problem.walking[n]), default=1)
                if unequal
                else 1
            )
            needed = int(_least_peak(problem, stages) * largest)
            if capacity is not None and needed > capacity:
                held = problem.static[device]
                need, whole = memory_text(problem, needed), memory_text(problem, capacity + held)
                static = f" in addition to {memory_text(problem, held)} of static memory" if held else ""
                named = list(dict.fromkeys(stage // problem.sequence_chunks for stage in stages))
                least = ", at the least" if any(problem.stages[s].saving_kinds for s in stages) else ""
                return (
                    f"memory: device {device} must hold the activations of {_listed(named)} of one micro-batch at "
                    f"once, {need}{static}{least}; its capacity is {whole}"
                )
    return None


def _least_peak(problem: Problem, stages: list[int]) -> int:
    """What a device must hold at some time of a micro-batch that walks these stages of it."""
    held, peak = 0, 0
    for s in stages:
        own = problem.stages[s]
        gather = problem.stages[problem.holders[s] if problem.holders else s].gather
        peak = max(peak, held + own.activation + own.lent + (gather.memory if gather else 0))
        held += own.lent + min(keeps for keeps, _ in own.held_until_backward.values())
    return peak


def _listed(stages: list[int]) -> str:
    return f"stage{'' if len(stages) == 1 else 's'} {', '.join(map(str, stages))}"
