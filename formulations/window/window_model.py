"""A large-neighbourhood search window as a CP-SAT model: some units are reordered, all others keep their order.

Where modes can gain, those of the passes that are reordered are open too. What starts before the window is fixed. What
starts after it keeps its order and is summarised by one number per unit: the longest path from its start to the end.
So the size of the model does not depend on the length of the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise

from ortools.sat.python import cp_model

from formulations.variables.operations import Operation
from formulations.window.mode_choices import MemoryEvent, ModeChoices
from formulations.window.operation_units import modes_matter
from formulations.window.order_units import operation_of
from formulations.window.placed import Placed
from pipesched.problem.passes import BW, B, Pass, Slot
from pipesched.schedule.schedule import Schedule


class Window:
    """The model of the units that start from `since` to before `until`; those on `free` devices may change order.

    Minimises the value, and with little weight each device's part in it, so that a window that cannot lower the value
    still leaves its neighbours room.
    """

    def __init__(self, placed: Placed, since: int, until: int, free: Collection[int]) -> None:
        self.placed, self.units, self.free = placed, placed.units, free
        self.cp = cp_model.CpModel()
        self.since = since
        self.inside = [[n for n in order if since <= placed.start[n] < until] for order in placed.orders]
        self.most = placed.value
        self.horizon = self.most + max(placed.opening)
        choosing = [d for d in free if self.inside[d]] if modes_matter(self.units.problem) else []
        self.start = {
            n: self.cp.new_int_var(0, self.horizon, f"S{n}")
            for device, held in enumerate(self.inside)
            for n in held
            if device not in choosing
        }
        self.choices = {d: ModeChoices(self.cp, self.units, self.inside[d], self.horizon) for d in choosing}
        self.ends: dict[Operation, cp_model.LinearExprT] = {
            operation_of(p): start + self.units.ticks[n] for n, start in self.start.items() for p in self.units.slots[n]
        }
        for choices in self.choices.values():
            self.ends |= {x: choice.end for x, choice in choices.of.items()}
        self.rest = placed.rest(until)
        value = self.cp.new_int_var(0, self.most, "value")
        parts = []
        for device, held in enumerate(self.inside):
            if held:
                part = self.cp.new_int_var(0, self.most, f"part{device}")
                self.cp.add(value >= part)
                self._device(device, held, part)
                parts.append(part)
        self.cp.minimize(value * len(parts) + sum(parts))
        for number, start in self.start.items():
            self.cp.add_hint(start, placed.start[number])
        for choices in self.choices.values():
            choices.hint(placed)

    def _device(self, device: int, held: list[int], part: cp_model.IntVar) -> None:
        order, opening = self.placed.orders[device], self.placed.opening[device]
        first, last = order.index(held[0]), order.index(held[-1])
        begin = opening if first == 0 else self.placed.end(order[first - 1])
        after = -opening if last + 1 == len(order) else self.rest[order[last + 1]]
        if device in self.choices:
            for x, choice in self.choices[device].of.items():
                kind = BW if x.role is B and not self.units.problem.splittable else x.role
                p = Pass(kind, x.stage, x.microbatch)
                self._pass(p, choice.start, choice.end, begin, after, part)
            self._memory(device, order[:first], self.choices[device].memory_changes())
            return
        for number in held:
            for p in self.units.slots[number]:
                start = self.start[number]
                self._pass(p, start, start + self.units.ticks[number], begin, after, part)
        if device in self.free:
            self._any_order(held)
            self._memory(device, order[:first], self._changes(held))
        else:
            for one, other in pairwise(held):
                self.cp.add(self.start[other] >= self.start[one] + self.units.ticks[one])

    def _pass(
        self, p: Pass, start: cp_model.IntVar, end: cp_model.LinearExprT, begin: int, after: int, part: cp_model.IntVar
    ) -> None:
        """What must end before a pass, and what waits for it."""
        self.cp.add(start >= begin)
        self.cp.add(part >= end + after)
        for before, lag in self._needs(p):
            ready = self.ends[before] if before in self.ends else self.placed.end(self.units.holding[before])
            self.cp.add(start >= ready + lag)
        for number, lag in self._fed(operation_of(p)):
            self.cp.add(part >= end + lag + self.rest[number])

    def _needs(self, p: Pass) -> Iterator[tuple[Operation, int]]:
        for before, lag in self.units.problem.network.predecessors(p, ()):
            yield operation_of(before), lag

    def _fed(self, x: Operation) -> Iterator[tuple[int, int]]:
        """The units after the window that need an operation in it, and the lag."""
        number = self.units.holding.get(x)
        for other in dict.fromkeys(n for n, _ in self.placed.feeds[number]) if number is not None else ():
            for p in self.units.slots[other] if other in self.rest else ():
                yield from ((other, lag) for before, lag in self._needs(p) if before == x)

    def _any_order(self, held: list[int]) -> None:
        """No overlap, micro-batch order."""
        ticks = self.units.ticks
        self.cp.add_no_overlap([self.cp.new_fixed_size_interval_var(self.start[n], ticks[n], "") for n in held])
        latest: dict[int, int] = {}
        for number in held:
            line = self.units.line[number]
            if line in latest:
                self.cp.add(self.start[number] >= self.start[latest[line]] + ticks[latest[line]])
            latest[line] = number

    def _changes(self, held: list[int]) -> list[MemoryEvent]:
        takes, gives, ticks = self.units.takes, self.units.gives, self.units.ticks
        changes = []
        for number in held:
            start = self.start[number]
            if takes[number]:
                changes.append(MemoryEvent(start, takes[number]))
            if gives[number]:
                changes.append(MemoryEvent(start + ticks[number], -gives[number]))
        return changes

    def _memory(self, device: int, before: Sequence[int], changes: list[MemoryEvent]) -> None:
        """What is taken is held to the window's end; what will be given back is held from its beginning until then."""
        capacity = self.units.problem.room[device]
        if capacity is None:
            return
        room = capacity - sum(self.units.takes[n] - self.units.gives[n] for n in before)
        intervals, demands = [], []
        begin, end = self.since - 1, self.horizon + 1
        for when, amount in changes:
            size = self.cp.new_int_var(0, end - begin, "")
            since, until = (when, end) if amount > 0 else (begin, when)
            intervals.append(self.cp.new_interval_var(since, size, until, ""))
            demands.append(abs(amount))
            room -= min(0, amount)
        if sum(demands) > room:
            self.cp.add_cumulative(intervals, demands, room)

    def schedule(self, value_of: Callable[[cp_model.IntVar], int]) -> Schedule:
        """The schedule of a solution."""
        orders: list[tuple[Slot, ...]] = []
        for device, order in enumerate(self.placed.orders):
            held, slots = self.inside[device], [self.units.slots[n] for n in order]
            if held and device in self.free:
                first = order.index(held[0])
                slots[first : first + len(held)] = self._reordered(device, held, value_of)
            orders.append(tuple(slots))
        return Schedule(tuple(orders), "pipesched")

    def _reordered(self, device: int, held: list[int], value_of: Callable[[cp_model.IntVar], int]) -> list[Slot]:
        if device in self.choices:
            return self.choices[device].slots(value_of)
        at = {n: value_of(self.start[n]) for n in held}
        return [self.units.slots[n] for n in sorted(held, key=lambda n: (at[n], at[n] + self.units.ticks[n]))]
