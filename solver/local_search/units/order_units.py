"""Order units: the passes or overlapped blocks that local search reorders, with their precedences and memory.

A unit is a pass, or an overlapped block of two. Full backwards and blocks are fixed as in the schedule; only the order
of the units on each device changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from formulations.variables.operations import Operation
from pipesched.deadline import SHORT, asking
from pipesched.problem.passes import BW, B, Pass, Slot, Task, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, Ticks
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import block_ticks

# A unit: an index in the lists of `Units`, which have an entry for each unit.
UnitId: TypeAlias = int
# The numbers of a device's units in the order they run, for every device.
Orders = list[list[UnitId]]


class Units:
    """Units of a schedule, by number: passes or overlapped blocks.

    `slots[n]` has the passes of unit n, `ticks[n]` is its duration, `device[n]` its device, `needs[n]` the (unit, lag
    in ticks) pairs of its predecessors, `takes[n]` the memory that it takes at its start and `gives[n]` what it frees
    at its end; `orders` are the units of each device, in order. Units of one `line` run in the order of their
    micro-batches: they are of one kind and stage, so exchanging them changes nothing; or their order is fixed. `scale`
    is time steps per tick.
    """

    scale = 1

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.problem, self.name = problem, schedule.name
        self.slots: list[Slot] = []
        self.device: list[DeviceId] = []
        self.ticks: list[Ticks] = []
        self.orders: Orders = [self._add(device, order) for device, order in enumerate(schedule.orders)]
        unit_of = {p: number for number, slot in enumerate(asking(self.slots, SHORT)) for p in slot}
        self.needs = [
            [(unit_of[before], lag) for p in slot for before, lag in problem.network.predecessors(p, unit_of)]
            for slot in asking(self.slots, SHORT)
        ]
        changes = [[problem.network.change[p.kind, p.stage] for p in slot] for slot in asking(self.slots, SHORT)]
        self.takes = [sum(at_start for at_start, _ in change) for change in asking(changes, SHORT)]
        self.gives = [-sum(at_end for _, at_end in change) for change in asking(changes, SHORT)]
        lines: dict[tuple[object, ...], int] = {}
        slots = asking(self.slots, SHORT)
        self.line = [lines.setdefault(tuple(self._line(p) for p in slot), len(lines)) for slot in slots]

    @property
    def room(self) -> Sequence[MemorySteps | None]:
        """Memory capacity of each device for activations, in steps of memory; None without a limit."""
        return self.problem.room

    @property
    def owner(self) -> list[DeviceId]:
        """The device of each order: one order per device."""
        return list(range(self.problem.devices))

    @property
    def tasks(self) -> list[Task]:
        """The task of each unit; of a block, that of its forward."""
        return [Task(slot[0]) for slot in self.slots]

    def _line(self, p: Pass) -> tuple[object, int]:
        """Return a key that is equal for passes that must keep micro-batch order.

        It is the kind and stage or, where chains share a queue, the role and queue of a forward or backward.
        """
        if p.kind is W or not self.problem.walks.queues:
            return p.kind, p.stage
        return operation_of(p).role, self.problem.walks.queues[p.stage]

    def _add(self, device: DeviceId, order: Sequence[Slot]) -> list[UnitId]:
        first = len(self.slots)
        for slot in asking(order, SHORT):
            block = block_ticks(self.problem, slot)
            parts: list[Slot] = [slot] if block is not None else [(p,) for p in slot]
            self.slots += parts
            self.device += [device] * len(parts)
            self.ticks += [block] if block is not None else [self.problem.duration(p) for p in slot]
        return list(range(first, len(self.slots)))

    def schedule(self, orders: Sequence[Sequence[UnitId]]) -> Schedule:
        """Return the schedule that runs the units, given by number, in these orders."""
        return Schedule(tuple(tuple(self.slots[n] for n in order) for order in orders), "pipesched")


def operation_of(p: Pass) -> Operation:
    """Return the operation that a pass stands for: B for a full backward (BW), else of the pass's own kind."""
    return Operation(B if p.kind is BW else p.kind, p.stage, p.microbatch)
