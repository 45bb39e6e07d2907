"""Constraint: tasks of one stream of a device do not overlap; an overlapped block counts as one task."""

from __future__ import annotations

from itertools import pairwise

from ortools.sat.python import cp_model

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.variables.literals import negation
from formulations.variables.model_variables import Model
from formulations.variables.operations import Operation
from formulations.variables.resource_order import ResourceOrder
from pipesched.deadline import asking
from pipesched.problem.network.task_network import Resource
from pipesched.schedule.timeline import Timeline


def check(timeline: Timeline) -> bool:
    """True if no task of a stream begins before the previous one ends."""
    for device in range(timeline.problem.devices):
        for stream in timeline.problem.streams:
            intervals = sorted(timeline.busy(device, stream))
            if any(other[0] < one[1] for one, other in pairwise(intervals)):
                return False
    return True


def post(model: Model) -> None:
    """Post that of two operations of a stream the earlier ends before the other starts.

    Stated by order literals if the model has them, else by CP-SAT's no-overlap.
    """
    if model.order is None:
        by_intervals(model)
        return
    in_turn = model.operations.in_microbatch_order
    for order in model.orders:
        for x, near in asking(order.just_before.items()):
            for earlier in near:
                if in_turn.get(earlier) != x:  # the constraint of micro-batch order has the other pairs
                    model.cp.add(model.start[x] >= model.end(earlier)).only_enforce_if(model.where(x, earlier))
        for x, y, ahead in order.undecided():
            model.cp.add(model.start[y] >= model.end(x)).only_enforce_if([ahead, *model.where(x, y)])
        _together(model, order)


def _together(model: Model, order: ResourceOrder) -> None:
    """Post that the two passes of an overlapped block start together and are in no other block.

    Both have the same order to every other operation.
    """
    for (forward, backward), block in order.together.items():
        model.cp.add(model.start[forward] == model.start[backward]).only_enforce_if(block)
        model.cp.add_implication(block, model.fused[backward.stage, backward.microbatch])
        for z in order.operations:
            if z not in (forward, backward):
                for one, other in ((forward, backward), (backward, forward)):
                    # before(one, z) and not before(other, z), with the block: impossible.
                    model.cp.add_bool_or(block.negated(), negation(order.before(one, z)), order.before(other, z))
    for x in order.operations:
        blocks = [literal for pair, literal in order.together.items() if x in pair]
        if blocks:
            model.cp.add_at_most_one(blocks)


def by_intervals(model: Model) -> None:
    """Post CP-SAT's no-overlap on each resource, with one interval per block and per operation that is in no block."""
    intervals: dict[Resource, list[cp_model.IntervalVar]] = {where: [] for where in model.operations.on}
    blocks: dict[Operation, list[cp_model.IntVar]] = {}
    for (forward, backward), block in model.together.items():
        start, size = model.start[forward], model.block(forward, backward)
        interval = model.cp.new_optional_fixed_size_interval_var(start, size, block, f"I{block}")
        intervals[model.operations.resources(forward)[0]].append(interval)
        model.cp.add(start == model.start[backward]).only_enforce_if(block)
        model.cp.add_implication(block, model.fused[backward.stage, backward.microbatch])
        for x in (forward, backward):
            blocks.setdefault(x, []).append(block)
    alone: dict[Operation, cp_model.IntervalVar] = {}
    for where, operations in model.operations.on.items():
        for x in operations:
            if x not in alone:
                alone[x] = _alone(model, x, blocks.get(x))
            intervals[where].append(alone[x])
        model.cp.add_no_overlap(intervals[where])


def _alone(model: Model, x: Operation, blocks: list[cp_model.IntVar] | None) -> cp_model.IntervalVar:
    """Return the interval of an operation, present if it runs and is in none of `blocks` (None: no block has it).

    With `blocks`, it is posted that exactly one of them, or a literal of being in none, is true. An operation of
    variable length that no block has is always present, with length 0 if it does not run.
    """
    start, size, runs, name = model.start[x], model.alone(x), model.runs(x), f"I{x}"
    if isinstance(size, int) and blocks is None:
        return model.cp.new_optional_fixed_size_interval_var(start, size, runs, name)
    end = model.cp.new_int_var(0, 2 * model.horizon, f"E{x}")
    if blocks is None:
        return model.cp.new_interval_var(start, size, end, name)
    alone = model.cp.new_bool_var(f"{x} alone")
    model.cp.add_exactly_one(alone, *blocks)
    return model.cp.new_optional_interval_var(start, size, end, alone, name)


CONSTRAINTS.register(Constraint("no overlap", check, post))
