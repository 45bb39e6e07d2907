"""Order units with times: a timeline as windows and moves see it, and how long what follows a unit takes."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import TopologicalSorter
from itertools import pairwise

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
        # A unit that feeds another starts no later.
        late = (number for order in self.orders for number in order if self.start[number] >= since)
        followers = TopologicalSorter({number: self._followers(number) for number in late})
        for number in followers.static_order():
            device = self.units.device[number]
            behind = self.behind.get(number)
            longest = -self.opening[device] if behind is None else rest[behind]
            for other, lag in self.feeds[number]:
                longest = max(longest, lag + rest[other])
            rest[number] = longest + self.units.ticks[number]
        return rest

    def _followers(self, number: int) -> list[int]:
        behind = self.behind.get(number)
        return [other for other, _ in self.feeds[number]] + ([behind] if behind is not None else [])
