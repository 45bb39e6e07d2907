"""Objectives that CP-SAT minimises: makespan, span, and iteration (makespan with reductions and optimizer steps)."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from ortools.sat.python import cp_model

from formulations.exact.valid_inequalities import IdleTimes
from formulations.exact.work_by_mode import DeviceWork
from formulations.jobs.quantities import TimeSteps
from formulations.variables.model_variables import Model
from formulations.variables.operations import Operation
from pipesched.problem.attainable_spans import Value
from pipesched.problem.network.task_network import Resource
from pipesched.problem.quantities import DeviceId, Ticks


def post_objective(
    model: Model,
    at_most: Ticks,
    at_least: Value,
    idle: IdleTimes,
    work: Mapping[Resource, DeviceWork],
) -> cp_model.IntVar:
    """Add the objective, in steps, as a variable to be minimised; return the variable.

    It is at least `at_least` and at most `at_most`, both in ticks. `idle` and `work` are the variables of the valid
    inequalities, made by `post_redundant` and `post_work`.
    """
    # All tasks of zero duration together take at most `zeros` steps.
    highest = at_most * model.scale + model.jobs.zeros
    value = model.cp.new_int_var(min(ceil(at_least * model.scale), highest), highest, "value")
    here: dict[int, list[Operation]] = {}
    for x in model.start:
        for device in model.operations.devices(x):
            here.setdefault(device, []).append(x)
    span = model.problem.objective.by_device
    begin = {device: _begin(model, device, operations) if span else 0 for device, operations in here.items()}
    for device, operations in here.items():
        for x in _last(model, operations):
            model.cp.add(value >= model.end(x) - begin[device]).only_enforce_if(model.where(x))
    for where, order in (model.order or {}).items():
        if span and len(model.jobs.devices_on(where)) > 1:
            continue  # the devices of this stream open at different times
        # The sum of all work and idle time of the resource: redundant, but CP-SAT cannot derive it if several
        # operations may be last.
        waited = model.cp.new_int_var(0, model.horizon, "")
        for x in order.operations:
            model.cp.add(waited >= idle[where][x]).only_enforce_if(model.where(x))
        opens = begin[where.device] if span else 0
        model.cp.add(value >= waited + sum(model.shortest[x] for x in order.operations) - opens)
        if where in work:
            for waited in work[where].idle:
                model.cp.add(value >= waited + work[where].total - opens)
    model.cp.minimize(value)
    return value


def _last(model: Model, operations: list[Operation]) -> list[Operation]:
    """Return the operations that may run last on a device: no operation that always runs is known to follow them."""
    predecessors, number = 0, model.operations.number
    for x in operations:
        if model.operations.always(x):
            predecessors |= model.known.before[number[x]]
    return [x for x in operations if not predecessors >> number[x] & 1]


def _begin(model: Model, device: DeviceId, operations: list[Operation]) -> cp_model.IntVar | TimeSteps:
    """Return the step from which a device's span counts: a constant, a first operation's start, or a new variable."""
    opened = model.jobs.opened[device] if model.jobs.opened else None
    if opened is not None:
        return opened
    known, here = model.known, model.known.bits(operations)
    firsts = [x for x in operations if not known.before[model.operations.number[x]] & here]
    if len(firsts) == 1 and model.operations.always(firsts[0]):
        return model.start[firsts[0]]
    begin = model.cp.new_int_var(0, model.horizon, "")
    for x in operations if not all(map(model.operations.always, firsts)) else firsts:
        model.cp.add(begin <= model.start[x]).only_enforce_if(model.where(x))
    return begin
