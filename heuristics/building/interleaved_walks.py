"""Building blocks of the 1F1B family: order of chunks and micro-batches, warm-up, and the alternation after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from heuristics.building.requirements import one_stage_a_device, round_robin
from pipesched.deadline import SHORT, asking
from pipesched.errors import DoesNotApply
from pipesched.problem.passes import BW, B, F, Pass, Slot, W
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import overlapped


class Walk(NamedTuple):
    """The forwards of one device in order, its full backwards in order, and the number of warm-up forwards."""

    forwards: list[Pass]
    backwards: list[Pass]
    warm_up: int


def even_groups(problem: Problem) -> list[range]:
    """Return the micro-batches in m // p groups (at least one), as equal as possible, larger ones first.

    A group smaller than p would not fill the round trip over the devices and can deadlock (p=4, v=3, m=5); Megatron too
    refuses one. PyTorch forms the same groups where they are equal, and refuses other cases.
    """
    m = problem.microbatches
    count = max(1, m // problem.devices)
    sizes = [m // count + (group < m % count) for group in range(count)]
    return [range(sum(sizes[:group]), sum(sizes[: group + 1])) for group in range(count)]


def groups_of(problem: Problem, size: int) -> list[range]:
    """Return the micro-batches in groups of `size`, the remainder in a last group, as Megatron accepts them.

    Raises `DoesNotApply` as Megatron refuses them: groups of fewer than p, a remainder of fewer than p, and a size
    above the number of micro-batches. Numbers ascend.
    """
    m, p = problem.microbatches, problem.devices
    if not p <= size <= m:
        raise DoesNotApply(f"needs groups of {p} to {m} micro-batches (p to m); found {size}")
    if 0 < m % size < p:
        raise DoesNotApply(f"needs a last group of at least {p} micro-batches (p); groups of {size} leave {m % size}")
    return [range(first, min(first + size, m)) for first in range(0, m, size)]


def walks(problem: Problem, groups: Sequence[range], hop: int, extra: int = 0) -> list[Walk]:
    """Return the passes of every device in interleaved order: each group forwards through chunk 0, 1, ..., and back.

    `groups` are ranges of micro-batches; all forwards of a device are in one list, its full backwards in another. The
    last device warms up with the first group's forwards of all chunks but one, and `extra` more; each device before it
    with `hop` more than the one after it, none with more than all. Raises `DoesNotApply` unless stage s is on device s
    mod p.
    """
    v, p = round_robin(problem), problem.devices
    turns = [(chunk, j) for group in groups for chunk in range(v) for j in group]
    found = []
    for d in asking(range(p)):
        forwards = [Pass(F, chunk * p + d, j) for chunk, j in turns]
        backwards = [Pass(BW, (v - 1 - chunk) * p + d, j) for chunk, j in turns]
        warm_up = (v - 1) * len(groups[0]) + hop * (p - 1 - d) + extra
        found.append(Walk(forwards, backwards, min(len(turns), warm_up)))
    return found


def lines(problem: Problem, warm_up: Callable[[int], int]) -> list[tuple[int, Walk]]:
    """Return for every device (i, walk): its place in the pipeline, and its passes with `warm_up(i)` warm-up forwards.

    Places count from 0; the list is by device. A walk warms up with at most m forwards. Raises `DoesNotApply` unless
    there is one stage per device.
    """
    found, m = dict[int, tuple[int, Walk]](), problem.microbatches
    for i, stage in asking(enumerate(one_stage_a_device(problem))):
        forwards, backwards = ([Pass(kind, stage, j) for j in range(m)] for kind in (F, BW))
        found[problem.placement.stage_device[stage]] = i, Walk(forwards, backwards, min(m, warm_up(i)))
    return [found[d] for d in range(problem.devices)]


def one_forward_one_backward(walk: Walk, paired: bool = False) -> list[Slot]:
    """Return a device's slots: warm-up, then forward and backward in turn (`paired`: in one slot), then backwards."""
    order: list[Slot] = [(forward,) for forward in walk.forwards[: walk.warm_up]]
    steady = zip(walk.forwards[walk.warm_up :], walk.backwards, strict=False)
    for forward, backward in asking(steady, SHORT):
        order += [overlapped(forward, backward)] if paired else [(forward,), (backward,)]
    left = len(walk.backwards) - walk.warm_up
    return order + [(backward,) for backward in walk.backwards[left:]]  # cool-down


def delayed_weights(walk: Walk, delay: int) -> list[Pass]:
    """Return the order of a device with split backwards.

    Each W follows the B that is `delay` backwards later than its own. The warm-up forwards are first, then forward and
    B alternate. Weight passes left over at the end are last.
    """
    order = walk.forwards[: walk.warm_up]
    inputs = [backward._replace(kind=B) for backward in walk.backwards]
    weights = [backward._replace(kind=W) for backward in walk.backwards]
    for turn, backward in asking(enumerate(inputs), SHORT):
        order += walk.forwards[turn + walk.warm_up : turn + walk.warm_up + 1]
        order.append(backward)
        if turn >= delay:
            order.append(weights[turn - delay])
    return order + weights[max(0, len(weights) - delay) :]
