"""Topological order of a wait graph, or the cycle of waits that prevents one."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from graphlib import CycleError, TopologicalSorter

from pipesched.deadline import SHORT, ask, asking
from pipesched.errors import Deadlock

# Entry i has the numbers of the items that must precede item i.
Waits = Sequence[Sequence[int]]


def in_order(waits: Waits, rank: Callable[[int], tuple[int, ...]], name: Callable[[int], str]) -> list[int]:
    """Return all numbers, each after its predecessors.

    Whenever several can be next, the one of least rank, then least number. Raises `Deadlock` with the names along a
    cycle of waits if there is no such order.
    """
    left, after = [len(before) for before in waits], [list[int]() for _ in waits]
    for number, before in asking(enumerate(waits), SHORT):
        for other in before:
            after[other].append(number)
    ready = [(rank(number), number) for number, many in enumerate(left) if not many]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        ask()
        order.append(heapq.heappop(ready)[1])
        for number in after[order[-1]]:
            left[number] -= 1
            if not left[number]:
                heapq.heappush(ready, (rank(number), number))
    if len(order) < len(left):
        raise Deadlock([name(number) for number in _cycle(waits)])
    return order


def _cycle(waits: Waits) -> list[int]:
    """Return the numbers along a cycle of waits, each after one that it waits for; empty if there is no cycle."""
    try:
        TopologicalSorter(dict(enumerate(waits))).prepare()
    except CycleError as error:
        # It lists each number before one that waits for it, and the first again at the end.
        return list(error.args[1][:0:-1])
    return []
