"""The check that no plan or schedule leaves more free memory: with a little more reserved none fits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pipesched.checking.finding import Finding, Verdict
from pipesched.checking.partitions.by_device import none_fits
from pipesched.layers.free_memory import reserving_more
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId


def check_most_free(plan: PlanProblem, bound: Fraction) -> list[Finding]:
    """Return for each placement a finding on the claim that none of its plans leaves more than `bound` of memory free.

    The findings are in the order of `plan.choices`, the bound is in the file's unit of memory. VERIFIED if no partition
    fits the memory with a little more than `bound` reserved, NOT_VERIFIED if some may. TRUSTED where the check cannot
    look at all cuts, so that the claim rests on CP-SAT's search over partitions. Unless free memory is per layer, the
    devices must have a limit.
    """
    more, found = reserving_more(plan, bound), list[Finding]()
    for choice in plan.choices:
        text = f"{choice}: no plan leaves more than {plain(float(bound))} {plan.cluster.memory_unit} of memory free"
        if len(choice.on(plan.cluster.devices).chains[0]) > plan.model.most_stages:
            found.append(Finding(Verdict.VERIFIED, f"{text} (it has more stages than layers)"))
            continue
        none = none_fits(more, choice)
        if none:
            found.append(Finding(Verdict.VERIFIED, f"{text} (all partitions, looked at device by device)"))
        elif none is None:
            found.append(Finding(Verdict.TRUSTED, f"{text}: rests on CP-SAT's search over all partitions"))
        else:
            found.append(Finding(Verdict.NOT_VERIFIED, f"{text}: some partition may fit with more of it reserved"))
    return found


def check_most_left(problem: Problem, bound: Fraction) -> Finding:
    """Return the finding, VERIFIED or NOT_VERIFIED, on the claim that no schedule leaves more than `bound` free.

    What a schedule leaves free is the least over devices with a limited memory, of which there must be one. The bound
    is in the file's unit of memory.

    While the last forward of a micro-batch on a device runs, its forwards on earlier stages there have run and none of
    their backwards. So on the device there is what each of these stages keeps at least until its backward, and what the
    running forward takes.
    """
    limits = (
        room - max((_needed(problem, chain, device) for chain in problem.placement.chains), default=0)
        for device, room in enumerate(problem.room)
        if room is not None
    )
    least = min(limits) * problem.resolution
    stated, proved = (f"{plain(float(one))} {problem.memory_unit}".rstrip() for one in (bound, least))
    if least <= bound:
        return Finding(Verdict.VERIFIED, f"no schedule leaves more than {stated} of memory free")
    return Finding(Verdict.NOT_VERIFIED, f"no schedule leaves more than {stated} of memory free: shown is {proved}")


def _needed(problem: Problem, chain: Sequence[StageId], device: DeviceId) -> MemorySteps:
    """Return the least memory, in steps of the resolution, that a device needs for one micro-batch of a chain.

    The largest over its micro-batches, if their factors differ. 0 for a chain with no stage on the device.
    """
    here = [s for s in chain if problem.placement.stage_device[s] == device and problem.microbatches_of[s]]
    if not here:
        return 0
    kept = [min((keeps for keeps, _ in problem.stages[s].memory_until_backward.values()), default=0) for s in here[:-1]]
    last = here[-1]
    return max(
        sum(problem.scaled(amount, j) for amount in (*kept, problem.stages[last].activation))
        for j in problem.microbatches_of[last]
    )
