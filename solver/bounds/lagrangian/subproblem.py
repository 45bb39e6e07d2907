"""The Lagrangian subproblem: the least cost of one micro-batch's visits to a device, by exact dynamic programming.

Any non-negative multipliers give a valid bound. Times are ticks and multipliers integers, so nothing is rounded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formulations.single_device.visits import Later, OneDevice, Trip

Whole = NDArray[np.int64]

# Above any cost; three of them still fit into 64 bits.
NEVER = 2**61
# Before any time.
_ALWAYS = -(2**61)


class Multipliers(NamedTuple):
    """At `instants`, ascending: the multiplier of running a pass, and that of holding a unit of memory.

    A pass runs from its start until just before its end, and memory is held likewise.
    """

    instants: Whole
    running: Whole
    holding: Whole

    def of_all(self, capacity: int | None) -> int:
        """The value of the device's whole time and memory."""
        return int(self.running.sum()) + (capacity or 0) * int(self.holding.sum())


class _Least(NamedTuple):
    """The least cost of starting at a time or later: `costs[i]` from `times[i]` on. Non-decreasing in time."""

    times: Whole
    costs: Whole

    def at(self, times: Whole) -> Whole:
        found: Whole = self.costs[np.searchsorted(self.times, times, "right") - 1]
        return found


def solve_subproblem(device: OneDevice, trip: Trip, multipliers: Multipliers, until: int) -> int:
    """The least cost of a micro-batch's visits over all start times that end by `until`; NEVER if there are none."""
    charge = _Charge(multipliers)
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
    """The cost of passes under the multipliers."""

    def __init__(self, multipliers: Multipliers) -> None:
        self.instants = multipliers.instants
        self.running, self.holding = (np.concatenate([[0], np.cumsum(one)]) for one in multipliers[1:])

    def _before(self, summed: Whole, times: Whole) -> Whole:
        """The sum of the multipliers at instants before each time."""
        found: Whole = summed[np.searchsorted(self.instants, times, "left")]
        return found

    def least(
        self, earliest: int, latest: int, ticks: int, takes: int, gives: int, after: list[tuple[_Least, int]]
    ) -> _Least:
        """The least cost of a pass that starts in the window and of its successors, given the lags between starts.

        The cost of memory is a difference of prefix sums: at the end where it is freed less at the start where taken.
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
        """The least cost of a deferred pass; one that may run after all instants costs only memory."""
        least = self.least(earliest, until if latest is None else latest, later.ticks, 0, later.gives, [])
        if latest is not None:
            return least
        return _Least(least.times, np.minimum(least.costs, int(later.gives * self.holding[-1])))
