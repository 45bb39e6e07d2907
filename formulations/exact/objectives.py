"""The objectives that CP-SAT minimises: makespan and span."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from ortools.sat.python import cp_model

from formulations.exact.work_by_mode import DeviceWork
from formulations.variables.model_variables import Model
from formulations.variables.operations import Operation
from pipesched.problem.attainable_spans import Value
from pipesched.problem.passes import F
from pipesched.problem.problem import Objective


def post_objective(
    model: Model,
    at_most: int,
    at_least: Value,
    idle: Mapping[Operation, cp_model.IntVar],
    work: Mapping[int, DeviceWork] | None = None,
) -> cp_model.IntVar:
    """The objective as a variable, in steps, between the bounds given in ticks.

    `idle` is as `post_redundant` gives it, `work` as `post_work` does.
    """
    # Passes of zero duration take so many steps in all at most.
    highest = at_most * model.scale + model.zeros
    value = model.cp.new_int_var(ceil(at_least * model.scale), highest, "value")
    for device, operations in enumerate(model.operations):
        begin: cp_model.IntVar | int = 0
        if model.problem.objective is Objective.SPAN:
            begin = _begin(model, operations)
        for x in operations:
            if x == model.last(x.stage, x.microbatch) and _may_end(model, x):
                model.cp.add(value >= model.end(x) - begin)
        if operations and operations[0] in idle:
            # All work and all idle time of the device: nothing new, and what several last operations cannot say.
            waited = model.cp.new_int_var(0, model.horizon, "")
            for x in operations:
                model.cp.add(waited >= idle[x])
            model.cp.add(value >= waited + sum(model.shortest[x] for x in operations) - begin)
        if work and device in work:
            for waited in work[device].idle:
                model.cp.add(value >= waited + work[device].total - begin)
    model.cp.minimize(value)
    return value


def _begin(model: Model, operations: list[Operation]) -> cp_model.IntVar | int:
    """The start of a device's first pass: the first forward of the one chain it lies on, or the earlier of several."""
    chains = model.problem.placement.chain_index
    firsts: dict[int, Operation] = {}
    for x in operations:
        known = firsts.get(chains[x.stage])
        if x.role is F and (known is None or model.static.precedes(x, known)):
            firsts[chains[x.stage]] = x
    if len(firsts) <= 1:
        return next((model.start[x] for x in firsts.values()), 0)
    begin = model.cp.new_int_var(0, model.horizon, "")
    for x in firsts.values():
        model.cp.add(begin <= model.start[x])
    return begin


def _may_end(model: Model, x: Operation) -> bool:
    """Whether x may be its device's last pass of its stage: in micro-batch order, only the last micro-batch's."""
    if not model.static.in_microbatch_order(x.role, x.stage):
        return True
    return x.microbatch == model.problem.microbatches_of[x.stage][-1]
