"""Room in a device's memory while a schedule is built: a forward is let in only if what is under way can still end.

Micro-batches under way on a device end oldest first, and each gives back what it holds when it does (the banker's
rule), so that memory never locks.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.problem.passes import F, Pass
from pipesched.problem.problem import Problem


@dataclass
class _UnderWay:
    """A micro-batch on a device: what it holds there, and what its forwards have yet to take there."""

    held: int
    needed: int


class Room:
    """The memory of every device, after some passes."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._held = [0] * problem.devices
        self._under_way: list[dict[int, _UnderWay]] = [{} for _ in range(problem.devices)]
        self._begun: list[set[int]] = [set() for _ in range(problem.devices)]

    def fits(self, p: Pass, spare: int = 0) -> bool:
        """Whether a pass may start, and leaves so much more unused."""
        device = self.problem.device(p)
        capacity = self.problem.room[device]
        if capacity is None:
            return True
        room = capacity - self._held[device] - self.problem.network.change[p.kind, p.stage].at_start
        if p.kind is not F or room < spare:
            return room >= spare
        under_way = self._under_way[device]
        for j in sorted({*under_way, p.microbatch}):
            one = under_way.get(j) or _UnderWay(0, self._yet_to_take(device, j))
            taken = self.problem.network.held_in_flight[p.stage] if j == p.microbatch else 0
            if room < one.needed - taken:
                return False
            room += one.held + taken
        return True

    def put(self, p: Pass) -> None:
        """A pass has run."""
        device = self.problem.device(p)
        change = self.problem.network.change[p.kind, p.stage].total
        self._held[device] += change
        under_way = self._under_way[device]
        one = under_way.setdefault(p.microbatch, _UnderWay(0, self._yet_to_take(device, p.microbatch)))
        self._begun[device].add(p.microbatch)
        one.held += change
        if p.kind is F:
            one.needed -= change
        if one.held == one.needed == 0:
            del under_way[p.microbatch]

    def _yet_to_take(self, device: int, j: int) -> int:
        """What a micro-batch that is not under way takes on a device: nothing once it has been."""
        if j in self._begun[device]:
            return 0
        where = self.problem.placement.stage_device
        return sum(self.problem.network.held_in_flight[s] for s in self.problem.chain_of(j) if where[s] == device)
