"""Valid inequalities: redundant constraints on order and idle time that raise CP-SAT's bound above the load bound."""

from __future__ import annotations

from collections.abc import Mapping

from ortools.sat.python import cp_model

from formulations.jobs.quantities import TimeSteps
from formulations.variables.literals import negation
from formulations.variables.model_variables import Model
from formulations.variables.operations import Operation
from formulations.variables.resource_order import ResourceOrder
from pipesched.deadline import asking
from pipesched.problem.network.task_network import Resource

# Of each resource the idle time before each of its operations.
IdleTimes = Mapping[Resource, Mapping[Operation, cp_model.IntVar]]


def post_redundant(model: Model) -> IdleTimes:
    """Post inequalities of idle time and transitivity of orders on each resource that has order literals.

    Returns by resource and operation the variable of the idle time (steps) of that resource before the operation; empty
    for a model without order literals.
    """
    idle = dict[Resource, Mapping[Operation, cp_model.IntVar]]()
    for where, order in (model.order or {}).items():
        _order_logic(model, order)
        idle[where] = _idle(model, order)
    return idle


def post_origin(model: Model) -> None:
    """Post that the first task of all starts at step 0, so that a schedule cannot be shifted as a whole.

    This is for the span of a whole iteration alone, since every other objective counts from time 0.
    """
    if not model.problem.objective.by_device or model.jobs.release:
        return
    firsts = [x for x, n in model.operations.number.items() if not model.known.before[n]]
    if len(firsts) == 1:
        model.cp.add(model.start[firsts[0]] == 0)
        return
    earliest = [model.cp.new_bool_var(f"{x} at 0") for x in firsts]
    for x, literal in zip(firsts, earliest, strict=True):
        model.cp.add(model.start[x] == 0).only_enforce_if(literal)
    model.cp.add_bool_or(earliest)


def _idle(model: Model, order: ResourceOrder) -> dict[Operation, cp_model.IntVar]:
    """Post for each operation that its start is the idle time before it plus the work before it; return the idle times.

    They are variables in steps and do not decrease along the order: idle time at the head and in the middle of a
    resource is thus carried to its end. As separate variables, idle times save half the solve time. An operation counts
    with the least work that it may add (`Model.shortest`); what it takes beyond that counts as idle time.
    """
    idle = {x: model.cp.new_int_var(0, model.horizon, f"R{x}") for x in order.operations}
    sure = [y for y in order.operations if model.shortest[y]]
    for x in asking(order.operations):
        work = [model.shortest[y] * order.before(y, x) for y in sure if y != x]
        model.cp.add(model.start[x] == idle[x] + sum(work)).only_enforce_if(model.where(x))
        for earlier in order.just_before[x]:
            model.cp.add(idle[x] >= idle[earlier]).only_enforce_if(model.where(x, earlier))
    return idle


def _order_logic(model: Model, order: ResourceOrder) -> None:
    """Post transitivity of order literals with known orders.

    If x runs before y, so do the known predecessors of x, and x runs before the known successors of y.
    """
    just_after: dict[Operation, list[Operation]] = {x: [] for x in order.operations}
    for x, near in asking(order.just_before.items()):
        for one in near:
            just_after[one].append(x)
    for x, y, ahead in order.undecided():
        implied = [(one, y, one) for one in order.just_before[x]] + [(x, other, other) for other in just_after[y]]
        for one, other, third in implied:
            if any(model.operations.exclude(third, each) for each in (x, y)):
                continue
            truth = one == other or order.before(one, other)
            if truth is not True:
                model.cp.add_bool_or([negation(ahead), truth, *map(negation, model.where(third))])


def hint_idle(model: Model, idle: IdleTimes, starts: Mapping[Operation, TimeSteps]) -> None:
    """Hint the idle time before each operation that has a start, at its value with these `starts` (both in steps)."""
    for where, order in (model.order or {}).items():
        here = [x for x in order.operations if x in starts]
        for x in here:
            work = sum(model.shortest[y] for y in here if starts[y] < starts[x])
            model.cp.add_hint(idle[where][x], starts[x] - work)
