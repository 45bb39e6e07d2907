"""Topological order of a wait graph, or the cycle of waits that prevents one."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from graphlib import CycleError, TopologicalSorter

from pipesched.deadline import ask
from pipesched.errors import Deadlock

# Entry i has the numbers of the items that must precede item i.
Waits = Sequence[Sequence[int]]


def in_order(waits: Waits, rank: Callable[[int], tuple[int, ...]], name: Callable[[int], str]) -> list[int]:
    """Return all numbers, each after its predecessors.

    Whenever several can be next, the one of least rank, then least number. Raises `Deadlock` with the names along a
    cycle of waits if there is no such order.
    """
    sorter = TopologicalSorter(dict(enumerate(waits)))
    try:
        sorter.prepare()
    except CycleError as error:
        # It lists each number before one that waits for it, and the first again at the end.
        raise Deadlock([name(number) for number in error.args[1][:0:-1]]) from None
    ready: list[tuple[tuple[int, ...], int]] = []
    order: list[int] = []
    while sorter:
        ask()
        for number in sorter.get_ready():
            heapq.heappush(ready, (rank(number), number))
        order.append(heapq.heappop(ready)[1])
        sorter.done(order[-1])
    return order
