"""The cheapest way of a micro-batch through a device that charges for its time and memory, worked out exactly.

Whatever the prices, they prove something: if all micro-batches together must pay more than a device's whole time and
memory cost, they do not fit. Times are ticks and prices integers, so nothing is rounded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formulations.visits import Later, OneDevice, Trip

Whole = NDArray[np.int64]

# More than anything costs; three of them still fit into 64 bits.
NEVER = 2**61
# Before any time there is.
_ALWAYS = -(2**61)


class Prices(NamedTuple):
    """At `instants`, rising: what a pass that runs then pays, and what a unit of memory held then costs.

    A pass runs from its start until just before its end, and memory is held likewise.
    """

    instants: Whole
    running: Whole
    holding: Whole

    def of_all(self, capacity: int | None) -> int:
        """What the device's time and memory cost in all."""
        return int(self.running.sum()) + (capacity or 0) * int(self.holding.sum())


class _Least(NamedTuple):
    """The least cost of starting at a time or later: `costs[i]` from `times[i]` on. It never falls with time."""

    times: Whole
    costs: Whole

    def at(self, times: Whole) -> Whole:
        found: Whole = self.costs[np.searchsorted(self.times, times, "right") - 1]
        return found


def cheapest(device: OneDevice, trip: Trip, prices: Prices, until: int) -> int:
    """The least that any times of a micro-batch's visits cost with which all is over by then; NEVER if none are."""
    charge = _Charge(prices)
    least: _Least | None = None
    for visit in reversed(trip.visits):
        after = [] if least is None else [(least, visit.ticks + visit.away)]
        if visit.later is not None:
            latest = device.latest(visit.later, until)
            after.append((charge.put_off(visit.later, visit.earliest + visit.ticks, latest, until), visit.ticks))
        least = charge.least(visit.earliest, visit.latest(until), visit.ticks, visit.takes, visit.gives, after)
    assert least is not None, "a trip has visits"
    return int(least.costs[0])


class _Charge:
    """What passes pay."""

    def __init__(self, prices: Prices) -> None:
        self.instants = prices.instants
        self.running, self.holding = (np.concatenate([[0], np.cumsum(one)]) for one in prices[1:])

    def _before(self, summed: Whole, times: Whole) -> Whole:
        """The sum of the prices at instants before each time."""
        found: Whole = summed[np.searchsorted(self.instants, times, "left")]
        return found

    def least(
        self, earliest: int, latest: int, ticks: int, takes: int, gives: int, after: list[tuple[_Least, int]]
    ) -> _Least:
        """Of a pass that starts in the window, and of what comes after it, each with its least lag between starts.

        Memory is charged from when it is taken: taking it saves what was charged before, giving it back pays that.
        """
        if latest < earliest:
            return _Least(np.array([_ALWAYS]), np.array([NEVER]))
        # The cost changes only where an instant is just left behind, by the start or by the end, or what follows waits.
        changes = [self.instants + 1, self.instants + 1 - ticks, *(least.times - lag for least, lag in after)]
        times = np.unique(np.concatenate([[earliest], *changes]))
        times = times[(times >= earliest) & (times <= latest)]
        costs = self._before(self.running, times + ticks) - self._before(self.running, times)
        costs += gives * self._before(self.holding, times + ticks) - takes * self._before(self.holding, times)
        for least, lag in after:
            costs += least.at(times + lag)
        costs = np.minimum(np.minimum.accumulate(costs[::-1])[::-1], NEVER)
        rises = np.concatenate([[True], costs[1:] != costs[:-1]])
        times = np.concatenate([[_ALWAYS], times[rises][1:], [latest + 1]])
        return _Least(times, np.concatenate([costs[rises], [NEVER]]))

    def put_off(self, later: Later, earliest: int, latest: int | None, until: int) -> _Least:
        """Of a pass put off; one that may come after all instants pays only for the memory held until then."""
        least = self.least(earliest, until if latest is None else latest, later.ticks, 0, later.gives, [])
        if latest is not None:
            return least
        return _Least(least.times, np.minimum(least.costs, int(later.gives * self.holding[-1])))
