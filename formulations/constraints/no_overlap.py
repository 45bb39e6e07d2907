"""Constraint: tasks of one stream of a device do not overlap; an overlapped block counts as one task."""

from __future__ import annotations

from itertools import pairwise

from ortools.sat.python import cp_model

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.variables.model_variables import Model
from formulations.variables.operations import Operation
from formulations.variables.order_literals import DeviceOrder, negation
from pipesched.schedule.timeline import Timeline


def check(timeline: Timeline) -> bool:
    """Sorted by start, no interval of a stream begins before the one before it ends."""
    for device in range(timeline.problem.devices):
        for stream in timeline.problem.streams:
            intervals = sorted(timeline.busy(device, stream))
            if any(other[0] < one[1] for one, other in pairwise(intervals)):
                return False
    return True


def post(model: Model) -> None:
    """By order literals where there are any: whichever comes first ends before the other starts."""
    if model.order is None:
        _by_intervals(model)
        return
    for device in model.devices_in_order:
        for x in device.operations:
            for earlier in model.static.just_before(x):
                if earlier != model.static.before_in_line(x):  # that is the rule of line
                    model.cp.add(model.start[x] >= model.end(earlier))
        for x, y, ahead in device.undecided():
            model.cp.add(model.start[y] >= model.end(x)).only_enforce_if(ahead)
        _together(model, device)


def _together(model: Model, device: DeviceOrder) -> None:
    """The two of a block start as one, stand the same way to all others, and share the block with no third."""
    for (forward, backward), block in device.together.items():
        model.cp.add(model.start[forward] == model.start[backward]).only_enforce_if(block)
        fused = model.fused[backward.stage, backward.microbatch]
        model.cp.add_implication(block, fused)
        for z in device.operations:
            if z not in (forward, backward):
                for one, other in ((forward, backward), (backward, forward)):
                    # before(one, z) and not before(other, z), with the block: impossible.
                    model.cp.add_bool_or(block.negated(), negation(device.before(one, z)), device.before(other, z))
    for x in device.operations:
        blocks = [literal for pair, literal in device.together.items() if x in pair]
        if blocks:
            model.cp.add_at_most_one(blocks)


def _by_intervals(model: Model) -> None:
    """Without literals, CP-SAT's own no-overlap on each device: an operation alone, or one interval for its block."""
    intervals: list[list[cp_model.IntervalVar]] = [[] for _ in model.operations]
    blocks: dict[Operation, list[cp_model.IntVar]] = {}
    for (forward, backward), block in model.together.items():
        device = model.problem.placement.stage_device[forward.stage]
        start, size = model.start[forward], model.block(forward)
        intervals[device].append(model.cp.new_optional_fixed_size_interval_var(start, size, block, f"I{block}"))
        model.cp.add(start == model.start[backward]).only_enforce_if(block)
        model.cp.add_implication(block, model.fused[backward.stage, backward.microbatch])
        for x in (forward, backward):
            blocks.setdefault(x, []).append(block)
    for device, operations in enumerate(model.operations):
        intervals[device] += [_alone(model, x, blocks.get(x)) for x in operations]
        model.cp.add_no_overlap(intervals[device])


def _alone(model: Model, x: Operation, blocks: list[cp_model.IntVar] | None) -> cp_model.IntervalVar:
    """The interval of an operation, which is there where none of its blocks is."""
    size, name = model.alone(x), f"I{x}"
    if isinstance(size, int) and blocks is None:
        return model.cp.new_fixed_size_interval_var(model.start[x], size, name)
    end = model.cp.new_int_var(0, 2 * model.horizon, f"E{x}")
    if blocks is None:
        return model.cp.new_interval_var(model.start[x], size, end, name)
    alone = model.cp.new_bool_var(f"{x} alone")
    model.cp.add_exactly_one(alone, *blocks)
    return model.cp.new_optional_interval_var(model.start[x], size, end, alone, name)


CONSTRAINTS.register(Constraint("no overlap", check, post))
