"""Orders forced by memory: an operation does not fit before another one has released its memory.

Until x has ended, neither x nor any operation that x precedes has released memory. So if a forward starts before x has
ended, the forwards known to precede it occupy at least all that x and its successors would release; if that exceeds the
capacity, x must end first.

Only memory that passes of the same micro-batch and stage release is counted: keys and values that a piece of a
micro-batch takes for later pieces are released by a backward of another stage, which this argument does not follow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formulations.jobs.quantities import PoolId
from formulations.variables.operations import Operation, Operations
from pipesched.deadline import asking
from pipesched.problem.quantities import MemorySteps

Array = NDArray[np.int64]


class _Activation(NamedTuple):
    """Memory that a forward takes from a pool (`takes`), and the part of it whose release is followed here (`holds`).

    `taker` is the number of the forward's operation. `givers` are (number of a later operation of the micro-batch, the
    least memory that has been released when it ends in addition to the earlier ones).
    """

    taker: int
    takes: MemorySteps
    holds: MemorySteps
    givers: Sequence[tuple[int, MemorySteps]]


def forced_by_memory(
    operations: Operations, before: Sequence[int], pools: Collection[PoolId]
) -> Iterator[tuple[Operation, Operation]]:
    """Yield (x, y) where x must end before y starts, because the memory of one of `pools` has no room for y until then.

    `before[n]` are the known predecessors of operation n as bits.
    """
    names = list(operations.jobs_of)
    for pool in asking(pools):
        room = operations.jobs.room[pool]
        if room is not None:
            activations = _activations(operations, before, pool)
            for x, y in _forced(activations, before, room) if activations else ():
                yield names[x], names[y]


def _activations(operations: Operations, before: Sequence[int], pool: PoolId) -> list[_Activation]:
    """Return the activations in a memory pool that always exist and whose passes run in a known order.

    `before[n]` are the known predecessors of operation n as bits.
    """
    number, may_not_run, found = operations.number, operations.mode, list[_Activation]()
    for of_pass in operations.memory_by_pass(pool):
        of_pass.sort(key=lambda one: before[number[(one.last or one.first)[0]]].bit_count())
        takers = [one for one in of_pass if one.takes > one.running]
        if not takers or any(x in may_not_run for one in of_pass for x in (*one.first, *one.last)):
            continue
        first, left, givers = takers[0], takers[0].takes - takers[0].running, list[tuple[int, int]]()
        ends = [one for one in of_pass if one.gives > one.running]
        chain = [number[x] for one in (first, *ends) for x in one.last[:1]]
        single = len(first.first) == 1 and all(len(one.last) == 1 for one in ends)
        if single and all(before[y] >> x & 1 for x, y in pairwise(chain)):
            for one in ends:
                givers.append((number[one.last[0]], min(left, one.gives - one.running)))
                left -= givers[-1][1]
            whole = first.takes - first.running
            found.append(_Activation(number[first.first[0]], first.takes, whole - left, givers))
    return found


def _forced(activations: Sequence[_Activation], before: Sequence[int], room: MemorySteps) -> Iterator[tuple[int, int]]:
    """Yield (x, y), operation numbers: x must end before y takes its memory, since a pool of size `room` holds no more.

    `before[n]` are the known predecessors of operation n as bits. Of several x in a known order the last only.
    """
    takers = np.array([one.taker for one in activations])
    activation_of, givers, gives = np.array(
        [(n, *giver) for n, one in enumerate(activations) for giver in one.givers], np.int64
    ).reshape(-1, 3).T  # fmt: skip
    by_taker, by_giver = _bits(before, takers), _bits(before, givers)
    takes = np.array([one.takes for one in activations], np.int64)
    holds = np.array([one.holds for one in activations], np.int64)
    earlier = by_taker[:, takers]  # True if the second operation is known to take memory before the first
    may_have_ended = earlier[:, activation_of] & ~by_giver[:, takers].T
    level = takes + earlier @ holds - may_have_ended @ gives
    ended_by = by_giver[:, givers] | np.eye(len(givers), dtype=np.bool_)
    too_much = level[:, None] + (may_have_ended * gives) @ ended_by > room
    forced = too_much & may_have_ended & ~by_taker[:, givers]
    last = forced & (forced.astype(np.int64) @ by_giver[:, givers] == 0)
    for y, x in zip(*np.nonzero(last), strict=True):
        yield int(givers[x]), int(takers[y])


def _bits(before: Sequence[int], rows: Array) -> NDArray[np.bool_]:
    """Return a Boolean matrix: entry (i, n) is True if operation n is a known predecessor of operation `rows[i]`.

    `before[n]` are the known predecessors of operation n as bits.
    """
    size = (len(before) + 7) // 8
    packed = np.frombuffer(b"".join(before[n].to_bytes(size, "little") for n in rows.tolist()), np.uint8)
    return np.unpackbits(packed.reshape(-1, size), axis=1, bitorder="little").astype(np.bool_)
