"""Overlap literals: for a forward and a backward of a device, a Boolean `both run as one overlapped block`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ortools.sat.python import cp_model

from formulations.variables.operations import Operation, StaticOrder
from pipesched.problem.passes import B, F, W

# A forward and a backward, both of one device.
Pair = tuple[Operation, Operation]


def blocks_gain(static: StaticOrder, x: Operation, y: Operation) -> Pair | None:
    """(forward, backward) if x and y may run as an overlapped block, and can gain by it.

    A block that is no shorter than the forward and behind it the full backward ends nothing sooner, and none can gain
    where B and W are never worse than the full backward.
    """
    problem, (forward, backward) = static.problem, (x, y) if x.role is F else (y, x)
    if forward.role is not F or backward.role is not B or not problem.overlaps:
        return None
    if problem.splittable and static.in_microbatch_order(W, backward.stage):
        return None
    block = problem.stages[forward.stage].overlapped
    alone = problem.stages[forward.stage].forward + problem.stages[backward.stage].fused
    return (forward, backward) if block is not None and block < alone else None


def overlap_literals(
    model: cp_model.CpModel, static: StaticOrder, devices: Iterable[int], most: int
) -> dict[Pair, cp_model.IntVar] | None:
    """A literal for every two of these devices that may run as one block; None if they are too many."""
    problem, pairs = static.problem, list[Pair]()
    if not problem.overlaps:
        return {}
    for device in devices:
        for pair in _pairs(static, device):
            pairs.append(pair)
            if len(pairs) > most:
                return None
    return {pair: model.new_bool_var("&".join(map(str, pair))) for pair in pairs}


def _pairs(static: StaticOrder, device: int) -> Iterator[Pair]:
    operations = static.operations(device)
    forwards, backwards = ([x for x in operations if x.role is role] for role in (F, B))
    for x in forwards:
        for y in backwards:
            pair = blocks_gain(static, x, y)
            if pair is not None and not (static.precedes(x, y) or static.precedes(y, x)):
                yield pair
