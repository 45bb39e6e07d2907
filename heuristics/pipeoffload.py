"""PipeOffload: all or half of the activations are copied to the host after forward, and back before backward.

With one chunk per device the order is 1F1B, with several the generalised interleaved schedule. Half offload takes the
first half of a device's chunks: their forwards run first and their backwards last, so they live longest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from heuristics.building.memory_saving import full_offload, half_offload
from heuristics.building.requirements import equal_costs, peaks_along
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from heuristics.generalised_interleaved import generalised_interleaved
from heuristics.one_f_one_b import one_f_one_b
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule

Rule = Callable[[Problem, Schedule], Schedule]


def pipeoffload(problem: Problem, name: str, rule: Rule) -> Schedule:
    """Return 1F1B, or its generalised interleaved form, with activations offloaded by `rule`.

    `rule(problem, schedule)` returns the schedule with the copies inserted, such as `half_offload`. An activation whose
    copies do not fit between its forward and backward is kept, if its stage may keep it. Raises `DoesNotApply` for
    other placements, and unless every activation may be offloaded.
    """
    several = problem.placement.stages > problem.devices
    order = generalised_interleaved(problem) if several else one_f_one_b(problem)
    return rule(problem, Schedule(order.orders, name))


def _closed_form(problem: Problem, full: bool) -> ClosedForm | None:
    """Return 1F1B's makespan and span if one stage per device has copies no longer than a forward; else None.

    Such copies delay nothing, if out and back have a stream each. None also for unequal stages, limited memory, or a
    stage that does not copy its whole activation. Under full offload (`full`) a device then has three activations at
    once: one that runs, and one in each copy direction; only then are peaks given.
    """
    cost, p, m = equal_costs(problem.keeping_activations()), problem.devices, problem.microbatches
    if cost is None or problem.placement.stages > p or any(room is not None for room in problem.room):
        return None
    for stage in problem.stages:
        copies = stage.offload
        if copies is None or copies.out_stream == copies.in_stream or stage.stream in copies[2:4]:
            return None
        if max(copies.out_ticks, copies.in_ticks) > cost.F or copies.amount < stage.activation:
            return None
    makespan = (m + p - 1) * (cost.F + cost.BW)
    takes_time = all(stage.offload and stage.offload.out_ticks and stage.offload.in_ticks for stage in problem.stages)
    peak = peaks_along(problem, lambda i, stage: min(m, p - i, 3) * problem.network.memory_in_flight[stage])
    return ClosedForm(makespan=makespan, span=makespan, peak=peak if full and takes_time else None)


for _name, _which, _rule, _peak in (
    ("pipeoffload-full", "all", full_offload, "one stage a device: min(m, p-i, 3) on the i-th device, i from 0"),
    ("pipeoffload-half", "half", half_offload, "no formula: half of those of 1F1B, and those that are copied"),
):
    HEURISTICS.register(
        Heuristic(
            name=_name,
            reference=f"Wan et al., PipeOffload, arXiv 2503.01328, {_which} of the activations offloaded",
            needs="memory.offload on every stage; one stage a device, or interleaved placement",
            bubble="one stage a device: (p-1)(F+BW) if out and in take no longer than F, on two streams, of "
            "which memory has room for all",
            peak=_peak,
            order=partial(pipeoffload, name=_name, rule=_rule),
            closed_form=partial(_closed_form, full=_rule is full_offload),
        )
    )
