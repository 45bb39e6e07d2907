"""Valid inequalities: redundant constraints that raise CP-SAT's bound above the load bound."""

from __future__ import annotations

from ortools.sat.python import cp_model

from formulations.variables.model_variables import Model
from formulations.variables.operations import Operation
from formulations.variables.order_literals import DeviceOrder
from pipesched.problem.passes import F
from pipesched.problem.problem import Objective


def post_redundant(model: Model) -> dict[Operation, cp_model.IntVar]:
    """Idle-time inequalities and order logic for every device with order literals; returns the idle-time variables."""
    idle: dict[Operation, cp_model.IntVar] = {}
    for device in model.devices_in_order:
        _order_logic(model, device)
        idle |= _idle(model, device)
    return idle


def post_origin(model: Model) -> None:
    """The first pass of all starts at 0: without it times could move as one, and nothing is known to be early or late.

    Of a span alone, since a makespan counts from 0. Before the first forward of a chain nothing of that chain runs.
    """
    if model.problem.objective is not Objective.SPAN:
        return
    entries = [chain[0] for chain in model.problem.placement.chains]
    firsts = [x for x in model.start if x.role is F and x.stage in entries and model.static.before_in_line(x) is None]
    if len(firsts) == 1:
        model.cp.add(model.start[firsts[0]] == 0)
        return
    earliest = [model.cp.new_bool_var(f"{x} at 0") for x in firsts]
    for x, literal in zip(firsts, earliest, strict=True):
        model.cp.add(model.start[x] == 0).only_enforce_if(literal)
    model.cp.add_bool_or(earliest)


def _idle(model: Model, device: DeviceOrder) -> dict[Operation, cp_model.IntVar]:
    """start = idle time before + work before, and idle time is non-decreasing along the order.

    What a device waits at the head and in the middle is carried to its end. As a variable of its own, idle time is
    worth half the solve time.
    """
    idle = {x: model.cp.new_int_var(0, model.horizon, f"R{x}") for x in device.operations}
    for x in device.operations:
        work = [model.shortest[y] * device.before(y, x) for y in device.operations if y != x]
        model.cp.add(model.start[x] == idle[x] + sum(work))
        for earlier in model.static.just_before(x):
            model.cp.add(idle[x] >= idle[earlier])
    return idle


def _order_logic(model: Model, device: DeviceOrder) -> None:
    """If x runs before y, so does whatever is known to run before x, and x runs before whatever follows y."""
    just_before = {x: model.static.just_before(x) for x in device.operations}
    just_after: dict[Operation, list[Operation]] = {x: [] for x in device.operations}
    for x, earlier in just_before.items():
        for one in earlier:
            just_after[one].append(x)
    for x, y, ahead in device.undecided():
        implied = [(one, y) for one in just_before[x]] + [(x, other) for other in just_after[y]]
        for one, other in implied:
            truth = device.before(one, other) if one != other else True
            if truth is not True:
                model.cp.add_implication(ahead, truth)
