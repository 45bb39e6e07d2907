"""Feasibility: the reason why a problem has no schedule, and the check that sums of its times fit into 64 bits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from pipesched.errors import BadInput
from pipesched.int64_arrays import LARGEST
from pipesched.problem.chains.chain_groups import chain_groups
from pipesched.problem.formatting import listed_stages, memory_text
from pipesched.problem.partners import why_partners_lack_memory
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps, StageId
from pipesched.problem.scaled_stage import numbers_of


def refuse_overflow(problem: Problem) -> None:
    """Raise `BadInput` if all passes and transfers in ticks, or all memory, add up to more than `LARGEST` (2^60).

    The passes are forwards and backwards. All memory is the sum of all amounts of the stages (activations, workspace
    and others) but `static`, for every micro-batch; a device's memory for activations may not exceed `LARGEST` either.
    Solvers add such numbers in 64 bits. This cannot happen for problems read from a file, only for ones made in Python.
    """
    farthest = max((lag for row in problem.links for lag in row), default=0)
    largest = ceil(max(problem.walks.scale, default=1))
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
    units = problem.microbatches * largest * sum(abs(one) for stage in problem.stages for one in numbers_of(stage)[1])
    ample = max((room or 0 for room in problem.room), default=0)
    if max(units, ample) > LARGEST:
        raise BadInput(
            f"{problem.name}: memory: found {float(units):.1e} units in all activations, and capacities of up to "
            f"{float(ample):.1e}; allowed: up to {LARGEST:.1e}: a larger unit, or less memory"
        )


def why_infeasible(problem: Problem) -> str | None:
    """Return the reason why no schedule fits the memory, as a sentence for messages; None if none is found.

    Two things are checked: each device by itself, and groups of devices whose activations move to each other's memory
    (`why_partners_lack_memory`).

    The check of a device is necessary: before a micro-batch's first backward on it ends, all forwards of that
    micro-batch on it have run, with those that feed them, so it needs all their activations at once. The check is also
    sufficient: micro-batches that run one after the other, each backward fused, never need more.

    So None means that some schedule fits, with two exceptions. First, the capacity of other memory that activations
    move to: of an activation that may move, the device counts only the memory that stays until the backward, and all of
    it while one of the stage's passes runs; activations that a device stores for others count in the check of groups
    alone. Second, workspace, or memory kept until the end of the iteration: then the condition is only necessary, since
    the last pass of a stage starts after the passes of all other micro-batches have taken such memory.
    """
    unequal, groups = bool(problem.walks.scale), chain_groups(problem)
    for device, capacity in enumerate(problem.room):
        for group in groups:
            chain = [stage for n in group for stage in problem.placement.chains[n]]
            stages = [s for s in chain if problem.placement.stage_device[s] == device and problem.microbatches_of[s]]
            scale = [problem.walks.scale[j] if unequal else 1 for n in group for j in problem.walking[n]] or [1]
            in_turn, most = len(group) == 1, [_all_walking(problem, s) / min(scale) for s in stages]
            alone = _least_peak(problem, stages, in_turn, [1] * len(stages)) * max(scale)
            needed = int(max(alone, _least_peak(problem, stages, in_turn, most) * min(scale)))
            if capacity is not None and needed > capacity:
                static_memory = problem.static[device]
                need, whole = memory_text(problem, needed), memory_text(problem, capacity + static_memory)
                static = (
                    f" in addition to {memory_text(problem, static_memory)} of static memory" if static_memory else ""
                )
                named = list(dict.fromkeys(stage // problem.chain_arcs.pieces for stage in stages))
                least = ", at the least" if any(problem.stages[s].saving_kinds for s in stages) else ""
                with_pass_memory = ", with what passes hold while they run or keep until the end"
                with_pass_memory = with_pass_memory if problem.network.has_pass_memory else ""
                return (
                    f"memory: device {device} must hold the activations of {listed_stages(named)} of one micro-batch "
                    f"at once{with_pass_memory}, {need}{static}{least}; its capacity is {whole}"
                )
    return why_partners_lack_memory(problem)


def _all_walking(problem: Problem, stage: StageId) -> Fraction:
    """Return the sum of the factors of all micro-batches that go through a stage (their number if all are equal)."""
    walked, scale = problem.microbatches_of[stage], problem.walks.scale
    return sum((scale[j] for j in walked), Fraction(0)) if scale else Fraction(len(walked))


def _least_peak(
    problem: Problem, stages: list[StageId], in_turn: bool, ran: Sequence[Fraction | int]
) -> Fraction | MemorySteps:
    """Return a lower bound on a device's peak memory while one micro-batch of factor 1 goes through these stages of it.

    The memory is in steps of the resolution. `in_turn` is True if the stages lie on one chain, so that they run in this
    order. `ran` is for each stage the number of micro-batches (weighted by factor) that have run it, for memory kept
    until the end of the iteration.
    """
    whole = [problem.stages[s] for s in stages]
    least = min((own.workspace.forward for own in whole), default=0)
    in_use, kept = 0, Fraction(0)
    peak: Fraction | int = 0
    forwards = sum((own.until_end.forward * times for own, times in zip(whole, ran, strict=True)), Fraction(0))
    backwards = sum((own.until_end.backward * times for own, times in zip(whole, ran, strict=True)), Fraction(0))
    for place, (s, own, times) in enumerate(zip(stages, whole, ran, strict=True)):
        gather = problem.stages[problem.parameters.holder(s)].gather
        running = own.workspace.forward if in_turn else least * (place == len(whole) - 1)
        kept += own.until_end.forward * times * in_turn
        peak = max(
            peak, kept + in_use + own.activation + own.kv_cache.taken + running + (gather.memory if gather else 0)
        )
        # At its backward all forwards have run, and the backwards of this stage and those after it.
        at_backward = (in_use + forwards + backwards) * in_turn + own.activation + own.workspace.backward
        weight = min(own.activation, own.activation - own.freed) + own.workspace.weight
        peak = max(peak, at_backward, Fraction(weight))
        backwards -= own.until_end.backward * times
        in_use += own.kv_cache.taken + min(keeps for keeps, _ in own.memory_until_backward.values())
    return max(peak, sum(sum(own.until_end) * times for own, times in zip(whole, ran, strict=True)))
