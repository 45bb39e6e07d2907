"""Constraints on the order of one device's blocks within a period: no overlap, fused backwards, overlapped passes."""

from __future__ import annotations

from typing import Protocol

from ortools.sat.python import cp_model

from formulations.cyclic.block_graph import BlockGraph
from formulations.cyclic.pattern import Copy
from formulations.jobs.quantities import TimeSteps
from formulations.variables.literals import Truth, negation
from pipesched.problem.quantities import DeviceId

Linear = cp_model.LinearExpr | cp_model.IntVar | int


class Period(Protocol):
    """The variables of a periodic model to which the constraints on a device's order refer.

    Times are in steps of the model. `copies` micro-batches of `graph` repeat every `length` steps. For each (block
    copy, device), `place` is the block's start after the beginning of the device's period, `repetitions` its repetition
    count. `before` has a literal for each (earlier, later, device), `anchor` the first block of each device, None
    without blocks. `together` has a literal for every (forward, backward) that may overlap, `fused` one for each
    backward that may be full. `cp` is the CP-SAT model.
    """

    graph: BlockGraph
    copies: int
    length: TimeSteps
    cp: cp_model.CpModel
    anchor: list[Copy | None]
    place: dict[tuple[Copy, DeviceId], Linear]
    repetitions: dict[tuple[Copy, DeviceId], Linear]
    before: dict[tuple[Copy, Copy, DeviceId], Truth]
    fused: dict[Copy, Truth]
    together: dict[tuple[Copy, Copy], cp_model.IntVar]

    def duration(self, x: Copy) -> Linear:
        """Return the duration of a block copy in steps: a number, or an expression of its mode literals."""


def post_order(model: Period, device: DeviceId) -> None:
    """Add to `model.before` the order of every two blocks of a device, and post that blocks do not overlap.

    Overlapped pairs (`model.together`) are excepted. Fused backwards and their W are posted to be adjacent.
    """
    blocks = [Copy(b, i) for b in model.graph.on_device[device] for i in range(model.copies)]
    _no_overlap(model, device, blocks)
    for at, x in enumerate(blocks):
        for y in blocks[:at]:
            _decide(model, device, x, y)
            for one, other in ((x, y), (y, x)):
                literal = model.before[one, other, device]
                if literal is not False:
                    row = model.cp.add(model.place[other, device] >= model.place[one, device] + model.duration(one))
                    if literal is not True:
                        row.only_enforce_if(literal)
    _fuse(model, device, blocks)
    _overlap(model, device, blocks)


def _no_overlap(model: Period, device: DeviceId, blocks: list[Copy]) -> None:
    """Post that the blocks of a device lie in the period and do not overlap.

    Of two overlapped ones only the backward counts.
    """
    intervals = []
    for x in blocks:
        place, ticks = model.place[x, device], model.duration(x)
        model.cp.add(place + ticks <= model.length)
        if isinstance(ticks, int):
            intervals.append(model.cp.new_fixed_size_interval_var(place, ticks, ""))
            continue
        end = model.cp.new_int_var(0, model.length, f"E{x}@{device}")
        if all(x not in pair for pair in model.together):
            intervals.append(model.cp.new_interval_var(place, ticks, end, ""))
            continue
        # An interval's size may depend on one literal, not on several.
        size = model.cp.new_int_var(0, model.length, "")
        model.cp.add(size == ticks)
        overlapping = [literal for (forward, _), literal in model.together.items() if forward == x]
        if overlapping:
            alone = model.cp.new_bool_var(f"{x} alone")
            model.cp.add_exactly_one(alone, *overlapping)
            intervals.append(model.cp.new_optional_interval_var(place, size, end, alone, ""))
        else:
            intervals.append(model.cp.new_interval_var(place, size, end, ""))
    model.cp.add_no_overlap(intervals)


def _decide(model: Period, device: DeviceId, x: Copy, y: Copy) -> None:
    """Add the order literals of x and y to `model.before`: one is first (the anchor always), or they overlap."""
    anchor = model.anchor[device]
    together = next((model.together[pair] for pair in ((x, y), (y, x)) if pair in model.together), None)
    before: Truth = x == anchor if anchor in (x, y) else model.cp.new_bool_var(f"{x}<{y}@{device}")
    after = negation(before)
    if together is not None:
        if anchor not in (x, y):
            after = model.cp.new_bool_var(f"{y}<{x}@{device}")
            model.cp.add_exactly_one(before, after, together)
        elif before:
            before = negation(together)
        else:
            after = negation(together)
    model.before[x, y, device], model.before[y, x, device] = before, after


def _fuse(model: Period, device: DeviceId, blocks: list[Copy]) -> None:
    """Post that a weight block fused with its backward follows it directly, on every device that it runs on."""
    for fusion in model.graph.fusions:
        for i in range(model.copies):
            backward, weight = Copy(fusion.backward, i), Copy(fusion.weight, i)
            if backward not in blocks:
                continue
            literal = model.fused[backward]
            place = model.place[backward, device] + model.duration(backward)
            model.cp.add(model.place[weight, device] == place).only_enforce_if(literal)
            same = model.repetitions[weight, device] == model.repetitions[backward, device]
            model.cp.add(same).only_enforce_if(literal)
            for x in blocks:
                if x not in (backward, weight):
                    follows = model.before[weight, x, device] == model.before[backward, x, device]
                    model.cp.add(follows).only_enforce_if(literal)
            model.cp.add(model.before[backward, weight, device] == 1).only_enforce_if(literal)


def _overlap(model: Period, device: DeviceId, blocks: list[Copy]) -> None:
    """Post that two overlapped blocks have one position and one order to all others, and overlap no other block."""
    pairs = {pair: literal for pair, literal in model.together.items() if pair[0] in blocks}
    for (forward, backward), literal in pairs.items():
        model.cp.add(model.place[forward, device] == model.place[backward, device]).only_enforce_if(literal)
        for x in blocks:
            if x not in (forward, backward):
                same = model.before[forward, x, device] == model.before[backward, x, device]
                model.cp.add(same).only_enforce_if(literal)
    for backward in {backward for _, backward in pairs}:
        model.cp.add_at_most_one(literal for pair, literal in pairs.items() if pair[1] == backward)
