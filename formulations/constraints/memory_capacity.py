"""Constraint: the activation memory of a device never exceeds its capacity."""

from __future__ import annotations

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.variables.model_variables import Linear, Model
from formulations.variables.operations import Operation
from formulations.variables.order_literals import DeviceOrder, negation
from pipesched.problem.passes import B, F, W
from pipesched.schedule.metrics import memory_steps
from pipesched.schedule.timeline import Timeline


def check(timeline: Timeline) -> bool:
    """The level over time, device by device."""
    for device, capacity in enumerate(timeline.problem.room):
        if capacity is not None and max(level for _, level in memory_steps(timeline, device)) > capacity:
            return False
    return True


def post(model: Model) -> None:
    """By order literals, a row for each operation that takes memory; else by CP-SAT's cumulative."""
    for device, capacity in enumerate(model.problem.room):
        if capacity is None:
            continue
        if model.order is None:
            _cumulative(model, device, capacity)
        elif device in model.order:
            _rows(model, model.order[device], capacity)


def taken(model: Model, x: Operation) -> int:
    """What an operation takes when it starts; a B that takes more does so only where it is not fused."""
    network = model.problem.network
    if x.role is F:
        return network.held_in_flight[x.stage]
    return max(0, -network.freed_by_backward[x.stage]) if x.role is B and model.problem.splittable else 0


def given_back(model: Model, x: Operation) -> int:
    """What an operation gives back when it ends.

    A fused backward is B and a W of zero duration right after it, and together they give back the same.
    """
    network = model.problem.network
    if x.role is F:
        return 0
    if not model.problem.splittable:
        return network.held_in_flight[x.stage]
    freed = network.freed_by_backward[x.stage]
    return max(0, freed) if x.role is B else network.held_in_flight[x.stage] - freed


def _rows(model: Model, device: DeviceOrder, capacity: int) -> None:
    """What ran before x has taken, less what it has given back, leaves enough for x."""
    for x in device.operations:
        own = taken(model, x)
        if own == 0:
            continue
        level: list[Linear] = []
        for y in device.operations:
            change = taken(model, y) - given_back(model, y)
            if y != x and change:
                before = device.before(y, x)
                if before is not False:
                    level.append(change * before)
        if x.role is B:
            fused = model.fused[x.stage, x.microbatch]
            if fused is not False:
                level.append(-own * fused)
        # The backward in the same block as x counts for nothing yet: it gives back when the block ends.
        model.cp.add(own + sum(level) <= capacity)


def _cumulative(model: Model, device: int, capacity: int) -> None:
    """Each activation as two demands, of what B gives back and of what W does."""
    cp, intervals, demands = model.cp, [], []
    for x in model.operations[device]:
        if x.role is not F:
            continue
        backward, last = Operation(B, x.stage, x.microbatch), model.last(x.stage, x.microbatch)
        freed = given_back(model, backward)
        rest = model.problem.network.held_in_flight[x.stage] - (freed if last is not backward else 0)
        for until, demand in ((backward, freed), (last, rest)) if last != backward else ((last, freed),):
            if demand > 0:
                size = cp.new_int_var(0, model.horizon, "")
                end = cp.new_int_var(0, model.horizon, "")
                cp.add(end == model.end(until))
                intervals.append(cp.new_interval_var(model.start[x], size, end, f"M{x}{until.role}"))
                demands.append(demand)
        extra = taken(model, backward)
        if extra and last.role is W:
            fused = model.fused[x.stage, x.microbatch]
            size, end = cp.new_int_var(0, model.horizon, ""), cp.new_int_var(0, model.horizon, "")
            cp.add(end == model.end(last))
            intervals.append(cp.new_optional_interval_var(model.start[backward], size, end, negation(fused), f"X{x}"))
            demands.append(extra)
    cp.add_cumulative(intervals, demands, capacity)


CONSTRAINTS.register(Constraint("memory", check, post))
