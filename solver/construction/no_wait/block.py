"""The passes of one micro-batch by device, with their offsets from its start if none of them waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from pipesched.int64_arrays import int64_array
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, Ticks
from pipesched.problem.view import PipelineView
from solver.construction.lists.tables import fits_64_bits

# Columns of `Block.rows`: offset from the start of the micro-batch, duration, memory taken at the start and freed at
# the end; of a backward also the duration of the weight pass that follows (0: none), and the memory that this frees.
OFFSET, TICKS, TAKES, FREES, WEIGHT, WEIGHT_FREES = range(6)
UNLIMITED = -1


class Block(NamedTuple):
    """Forwards and backwards of one micro-batch: those of device d are `rows[at[d]:at[d + 1]]`, in order.

    The columns of `rows` are the start after that of the micro-batch, the duration, the memory taken at the start and
    freed at the end, then the duration of the weight pass of a backward (0: none), and the memory that this frees.
    Times are in ticks, memory in steps of the resolution. `room[d]` is the memory of device d (-1: unlimited),
    `since[d]` the tick from which the time of device d counts if the first micro-batch starts at 0: its first pass for
    the span, else 0. The value of a schedule is the largest time of a device. `length` is the end of the last backward
    after the micro-batch's start; `of[k]` is the kind and stage of row k.
    """

    rows: Any
    at: Any
    room: Any
    since: Any
    length: Ticks
    of: tuple[tuple[PassKind, StageId], ...]


def serves(problem: Problem) -> bool:
    """Return True for a plain pipeline of one chain in which some device's memory is limited.

    False without any limit, where nothing is gained by not waiting; also for a period, and where times or memory do not
    fit compiled code.
    """
    view = problem.view
    limited = view is not None and any(room is not None for room in view.room)
    one_chain = len(problem.placement.chains) == 1 and not problem.objective.repeats
    return limited and one_chain and fits_64_bits(problem)


def _kinds(split: bool) -> tuple[PassKind, ...]:
    return (F, B, W) if split else (F, BW)


def simplified(view: PipelineView, split: bool) -> Iterator[PipelineView]:
    """Yield the pipeline with and without transfer times, then both once more with passes of equal times.

    Those without transfers, or with equal times, are left out where they would be the same. Between passes of unequal
    times, and with transfers, hardly any start fits. An order found without them is valid with the real times too,
    since the memory of a device depends on the order of its passes alone. `split`: backwards are split into B and W.
    """
    ticks = [view.ticks[kind, s] for kind in _kinds(split) for s in view.stages]
    none = (0,) * len(view.arrivals)
    equal = replace(view, ticks={of: max(ticks) if own else 0 for of, own in view.ticks.items()})
    for one in (view, equal) if len({*ticks} - {0}) > 1 else (view,):
        yield one
        if any(view.arrivals) or any(view.returns):
            yield replace(one, arrivals=none, returns=none)


def block_of(view: PipelineView, split: bool, by_device: bool = False) -> Block:
    """Return the passes of a micro-batch of a pipeline with one chain, with backwards `split` into B and W or fused.

    `by_device`: the time of a device counts from its first pass, else from the micro-batch's start. Raises `OutOfRange`
    for numbers too large for compiled code.
    """
    (chain,), device = view.placement.chains, view.placement.stage_device
    placed: list[list[tuple[tuple[int, ...], tuple[PassKind, int]]]] = [[] for _ in range(view.devices)]
    now = 0
    for s in chain:
        now += view.arrivals[s]
        placed[device[s]].append(((now, view.ticks[F, s], view.memory_in_flight[s], 0, 0, 0), (F, s)))
        now += view.ticks[F, s]
    kind = B if split else BW
    for s in reversed(chain):
        now += view.returns[s]
        weight = view.ticks[W, s] if split else 0
        takes = max(0, -view.freed_by_backward(s)) if split else 0
        later = view.memory_until_weight[s] if weight else 0
        frees = view.memory_in_flight[s] + takes - later
        numbers = (now, view.ticks[kind, s], takes, frees, weight, later)
        placed[device[s]].append((numbers, (kind, s)))
        now += view.ticks[kind, s]
    # A chain runs its passes in this order, so that those of a device are in the order of their offsets.
    flat = [row for each in placed for row in each]
    return Block(
        np.array([numbers for numbers, _ in flat], np.int64),
        int64_array([0, *accumulate(map(len, placed))]),
        int64_array([UNLIMITED if one is None else one for one in view.room]),
        int64_array([by_device * each[0][0][OFFSET] for each in placed]),
        now,
        tuple(of for _, of in flat),
    )
