"""Topological order of things that wait for each other, or the cycle of waits that prevents one."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

from pipesched.errors import Deadlock

# The numbers of the things that each thing, known by its place in the list, comes after.
Waits = Sequence[Sequence[int]]


def in_order(waits: Waits, rank: Callable[[int], tuple[int, ...]], name: Callable[[int], str]) -> list[int]:
    """Every number behind those it waits for; of those that may be next, the one of least rank, then number.

    Raises `Deadlock` with the names along a cycle of waits where there is no such order.
    """
    followers: list[list[int]] = [[] for _ in waits]
    for number, before in enumerate(waits):
        for other in before:
            followers[other].append(number)
    missing = [len(before) for before in waits]
    ready = [(rank(number), number) for number, count in enumerate(missing) if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, number = heapq.heappop(ready)
        order.append(number)
        for other in followers[number]:
            missing[other] -= 1
            if missing[other] == 0:
                heapq.heappush(ready, (rank(other), other))
    if len(order) < len(waits):
        stuck = {n: next(other for other in waits[n] if missing[other]) for n, count in enumerate(missing) if count}
        raise Deadlock([name(number) for number in _cycle(stuck)])
    return order


def _cycle(waits: Mapping[int, int]) -> list[int]:
    """The cycle that following `waits`, from each number to one it waits for, ends in."""
    at = next(iter(waits))
    place: dict[int, int] = {}
    path: list[int] = []
    while at not in place:
        place[at] = len(path)
        path.append(at)
        at = waits[at]
    return path[place[at] :]
