"""A large-neighbourhood search window as a CP-SAT model: some units are reordered, all others keep their order.

What starts before the window is fixed. What starts after it keeps its order and is summarised by one number per unit:
the longest path from its start to the end. So the size of the model does not depend on the length of the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from ortools.sat.python import cp_model

from formulations.window.order_units import Orders, Units


class Placed:
    """An order of units with times: starts by unit, and the tick at which each device opens."""

    def __init__(self, units: Units, orders: Orders, start: Sequence[int], opening: Sequence[int]) -> None:
        self.units, self.orders, self.start, self.opening = units, orders, start, opening
        self.feeds: list[list[tuple[int, int]]] = [[] for _ in units.slots]
        for number, needs in enumerate(units.needs):
            for before, lag in needs:
                self.feeds[before].append((number, lag))
        self.behind: dict[int, int] = {}
        for order in orders:
            self.behind |= dict(pairwise(order))

    def end(self, number: int) -> int:
        return self.start[number] + self.units.ticks[number]

    @property
    def value(self) -> int:
        """The longest time from a device's opening to its end."""
        return max(self.end(order[-1]) - self.opening[d] for d, order in enumerate(self.orders) if order)

    def rest(self, since: int) -> dict[int, int]:
        """For units that start at `since` or later: from their start, the most that any device takes past its opening.

        A device's opening counts, so that value = max over units of start + rest.
        """
        rest: dict[int, int] = {}
        # A unit that feeds another starts no later; among equals of zero duration, precedence decides.
        for number in reversed(self._sequence(since)):
            device = self.units.device[number]
            behind = self.behind.get(number)
            longest = -self.opening[device] if behind is None else rest[behind]
            for other, lag in self.feeds[number]:
                longest = max(longest, lag + rest[other])
            rest[number] = longest + self.units.ticks[number]
        return rest

    def _sequence(self, since: int) -> list[int]:
        """The units that start at `since` or later, each after all it waits for."""
        late = {number for order in self.orders for number in order if self.start[number] >= since}
        waits = dict.fromkeys(late, 0)
        for number in late:
            for other in self._followers(number):
                waits[other] += 1
        sequence = [number for number in late if waits[number] == 0]
        for number in sequence:
            for other in self._followers(number):
                waits[other] -= 1
                if waits[other] == 0:
                    sequence.append(other)
        return sequence

    def _followers(self, number: int) -> list[int]:
        behind = self.behind.get(number)
        return [other for other, _ in self.feeds[number]] + ([behind] if behind is not None else [])


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
        self.start = {n: self.cp.new_int_var(0, self.horizon, f"S{n}") for held in self.inside for n in held}
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

    def _device(self, device: int, held: list[int], part: cp_model.IntVar) -> None:
        placed, ticks = self.placed, self.units.ticks
        order = placed.orders[device]
        first, last = order.index(held[0]), order.index(held[-1])
        begin = placed.opening[device] if first == 0 else placed.end(order[first - 1])
        after = -placed.opening[device] if last + 1 == len(order) else self.rest[order[last + 1]]
        for number in held:
            start = self.start[number]
            self.cp.add(start >= begin)
            self.cp.add(part >= start + ticks[number] + after)
            for before, lag in self.units.needs[number]:
                ready = self.start[before] if before in self.start else placed.start[before]
                self.cp.add(start >= ready + ticks[before] + lag)
            for other, lag in placed.feeds[number]:
                if other not in self.start:
                    self.cp.add(part >= start + ticks[number] + lag + self.rest[other])
        if device in self.free:
            self._any_order(device, held, order[:first])
        else:
            for one, other in pairwise(held):
                self.cp.add(self.start[other] >= self.start[one] + ticks[one])

    def _any_order(self, device: int, held: list[int], before: Sequence[int]) -> None:
        """No overlap, micro-batch order, memory."""
        ticks = self.units.ticks
        self.cp.add_no_overlap([self.cp.new_fixed_size_interval_var(self.start[n], ticks[n], "") for n in held])
        latest: dict[int, int] = {}
        for number in held:
            line = self.units.line[number]
            if line in latest:
                self.cp.add(self.start[number] >= self.start[latest[line]] + ticks[latest[line]])
            latest[line] = number
        capacity = self.units.problem.room[device]
        if capacity is not None:
            level = sum(self.units.takes[n] - self.units.gives[n] for n in before)
            self._memory(held, capacity - level)

    def _memory(self, held: list[int], room: int) -> None:
        """What is taken is held to the window's end; what will be given back is held from its beginning until then."""
        takes, gives, ticks = self.units.takes, self.units.gives, self.units.ticks
        intervals, demands = [], []
        begin, end = self.since - 1, self.horizon + 1
        for number in held:
            start = self.start[number]
            if takes[number]:
                size = self.cp.new_int_var(0, end - begin, "")
                intervals.append(self.cp.new_interval_var(start, size, end, ""))
                demands.append(takes[number])
            if gives[number]:
                room += gives[number]
                size = self.cp.new_int_var(0, end - begin, "")
                intervals.append(self.cp.new_interval_var(begin, size, start + ticks[number], ""))
                demands.append(gives[number])
        if sum(demands) > room:
            self.cp.add_cumulative(intervals, demands, room)

    def orders(self, value_of: Callable[[cp_model.IntVar], int]) -> Orders:
        """The orders of a solution."""
        orders = [list(order) for order in self.placed.orders]
        for device in self.free:
            held = self.inside[device]
            if held:
                first = orders[device].index(held[0])
                at = {n: value_of(self.start[n]) for n in held}
                orders[device][first : first + len(held)] = sorted(
                    held, key=lambda n: (at[n], at[n] + self.units.ticks[n])
                )
        return orders
