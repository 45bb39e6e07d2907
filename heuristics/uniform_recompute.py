"""Uniform recomputation: every forward runs again right before its backward, on every stage alike (Megatron-LM)."""

from __future__ import annotations

from heuristics.building.memory_saving import uniform_recompute
from heuristics.building.requirements import equal_costs, peaks_along
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from heuristics.interleaved_1f1b import interleaved_1f1b
from heuristics.one_f_one_b import one_f_one_b
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule

NAME = "uniform-recompute"


def megatron_recompute(problem: Problem) -> Schedule:
    """Return 1F1B, or interleaved 1F1B, with every activation recomputed right before its backward.

    These are Megatron's options `--recompute-granularity full --recompute-method uniform`. Raises `DoesNotApply` for
    other placements, or if some activation may not be recomputed.
    """
    several = problem.placement.stages > problem.devices
    order = interleaved_1f1b(problem) if several else one_f_one_b(problem)
    return uniform_recompute(problem, Schedule(order.orders, NAME))


def _closed_form(problem: Problem) -> ClosedForm | None:
    """Return makespan and peaks: the last device, never idle, recomputes m times; the others while they wait.

    None unless each device has one stage, costs are equal, transfers take no time, and all recompute in one mode.
    """
    cost, p, m = equal_costs(problem.keeping_activations()), problem.devices, problem.microbatches
    modes = {stage.recompute[0] for stage in problem.stages if stage.recompute}
    if cost is None or problem.placement.stages > p or len(modes) != 1:
        return None
    (mode,) = modes
    makespan = m * (cost.F + mode.ticks + cost.BW) + (p - 1) * (cost.F + cost.BW)
    whole = problem.network.memory_in_flight
    return ClosedForm(makespan, peak=peaks_along(problem, lambda i, s: whole[s] + (min(m, p - i) - 1) * mode.keeps))


HEURISTICS.register(
    Heuristic(
        name=NAME,
        reference="Korthikanti et al., Megatron-LM, arXiv 2205.05198; --recompute-method uniform",
        needs="memory.recompute on every stage; one stage a device, or interleaved placement",
        bubble="one stage a device: (p-1)(F+BW) + m·R of makespan over the work without recomputation, R its time",
        peak="one stage a device: an activation and min(m, p-i) - 1 times what is kept of one, on the i-th device",
        order=megatron_recompute,
        closed_form=_closed_form,
    )
)
