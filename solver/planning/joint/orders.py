"""Orders of a joint search as integer arrays: objective and memory under any stage costs, annealing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from formulations.partition.fixed_order import fullest
from pipesched.deadline import SHORT, asking
from pipesched.int64_arrays import IntArray
from pipesched.problem.passes import F, W
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.local_search.annealing import Annealer, annealed
from solver.local_search.annealing_run import AnnealingRun
from solver.local_search.arrays import Rows
from solver.local_search.exchange import NOTHING
from solver.local_search.units.operation_units import dominated_split
from solver.local_search.units.order_units import Units
from solver.parameters import tunable, tuned
from solver.planning.joint.draft import KINDS, Costs


@dataclass(frozen=True)
@tunable
class PlanOrderParams:
    """Cooling, energy and reach of the short annealing of a plan's order."""

    cooling: float = tuned(10.0, "times lower at the end", 1, 1000)
    evenness: float = tuned(0.1, "weight of the mean over devices in the energy", 0, 1)
    reach: int = tuned(8, "places that a pass is moved by at most", 1, 1000)


_PARAMS = PlanOrderParams()


class EvaluatedOrder(NamedTuple):
    """An order, as device rows of pass numbers, and its objective value in ticks."""

    value: Ticks
    order: IntArray


class OrderArrays:
    """Orders of the passes of one timeline, as arrays of shape (devices, most passes of a device) padded with -1.

    Entries are numbers of passes in `units`; `order` is that of the timeline, `count` the number of passes of each
    device. By pass, `stage` is its stage and `forward` True for an F. A chain has `length` stages, with `lags` in ticks
    from each to the next. With `free_order`, full backwards are split into B and W if that is never worse.
    """

    def __init__(self, timeline: Timeline, length: int, lags: list[Ticks], free_order: bool) -> None:
        problem, schedule = timeline.problem, timeline.schedule
        self.units = Units(problem, dominated_split(problem, schedule) if free_order else schedule)
        shop, _, rows = Annealer(self.units).arrays(self.units.orders)
        self._shop, self.order, self.count = shop, rows.order, rows.count
        passes = [slot[0] for slot in asking(self.units.slots, SHORT)]
        self._place = np.array([p.stage % length for p in passes])
        # The index of each pass's numbers in the arrays of `Costs`.
        self._type = np.array([KINDS.index(p.kind) for p in asking(passes, SHORT)]) * length + self._place
        self.stage = np.array([p.stage for p in passes])
        self.forward = np.array([p.kind is F for p in passes])
        self._microbatch = np.array([p.microbatch for p in passes])
        self._places_of = [np.array([stage % length for stage in own], int) for own in problem.placement.stages_of]
        self._capacity = [None if pool.capacity is None else pool.capacity for pool in problem.pools]
        self._lags = np.array([0, *lags]).cumsum()
        self._span = problem.objective.by_device
        self._opening = np.zeros(problem.devices, np.int64)
        # For a fixed order, the moments that may need the most memory.
        self._fullest = None if free_order else [_moments(schedule, d, length) for d in range(problem.devices)]

    def set_costs(self, costs: Costs) -> None:
        """Set the stage costs that `annealed` uses from now on; changes the arrays of the compiled code in place."""
        shop = self._shop
        for column, of in ((shop.ticks, costs.ticks), (shop.takes, costs.takes), (shop.gives, costs.gives)):
            column[:] = of.ravel()[self._type]
        before = np.concatenate(([0], costs.ticks[0].cumsum()[:-1])) + self._lags
        for device, places in enumerate(self._places_of):
            capacity = self._capacity[device]
            if capacity is not None:
                # A negative capacity would mean unlimited memory.
                shop.capacity[device] = max(0, capacity - int(costs.static[places].sum()))
            if self._span and len(places):
                self._opening[device] = before[places].min()

    def fits(self, order: IntArray, device: DeviceId, costs: Costs) -> bool:
        """True if the memory of `device` suffices for `order` (if fixed: for the timeline's) under these costs."""
        capacity = self._capacity[device]
        if capacity is None:
            return True
        if self._fullest is not None:
            whole, only_weight = self._fullest[device]
            levels = whole @ costs.takes[0] + only_weight @ costs.gives[KINDS.index(W)]
            return int(costs.static[self._places_of[device]].sum()) + int(levels.max(initial=0)) <= capacity
        types = self._type[order[device, : self.count[device]]]
        taken, given = costs.takes.ravel()[types].cumsum(), costs.gives.ravel()[types].cumsum()
        taken[1:] -= given[:-1]
        return int(costs.static[self._places_of[device]].sum()) + int(taken.max(initial=0)) <= capacity

    def annealed(self, order: IntArray, moves: int, temperature: float, seed: int) -> EvaluatedOrder | None:
        """Return the best order met within `moves` annealing moves that start at `order`; 0 moves only evaluate it.

        Stage costs are those of the last `set_costs`; `order` is not changed. `temperature` is in mean pass durations.
        None if the order deadlocks (its waits form a cycle). `seed` is that of the random numbers.
        """
        n = len(self._type)
        place = np.full(n, -1, np.int64)
        rows = Rows(order.copy(), self.count.copy(), place, np.zeros(n, np.int64))
        for device, number in enumerate(self.count.tolist()):
            place[order[device, :number]] = np.arange(number)
        how = AnnealingRun(temperature, temperature / _PARAMS.cooling, _PARAMS.evenness, 0.0, _PARAMS.reach)
        mean = float(self._shop.ticks.mean())
        found = annealed(self._shop, None, rows, NOTHING, self._opening, how.in_ticks(mean), moves, seed)
        return None if found is None else EvaluatedOrder(found[0], found[1].order)

    def shifted(self, order: IntArray, device: DeviceId, stage: StageId, earlier: bool) -> IntArray:
        """Return the order with each forward of `stage` exchanged with the backward directly before or after it.

        Before it with `earlier`: then one more micro-batch of the stage is in flight on the device, else one fewer. A
        forward is not exchanged with the backward of its own micro-batch and place.
        """
        found = order.copy()
        row = found[device].tolist()[: int(self.count[device])]
        forward, at = self.forward, 0
        while at + 1 < len(row):
            a, b = row[at], row[at + 1]
            moving, other = (b, a) if earlier else (a, b)
            own = self._place[a] == self._place[b] and self._microbatch[a] == self._microbatch[b]
            if forward[moving] and self.stage[moving] == stage and not forward[other] and not own:
                row[at], row[at + 1] = b, a
                at += 1
            at += 1
        found[device, : len(row)] = row
        return found

    def schedule(self, order: IntArray, name: str) -> Schedule:
        """Return `order` as a schedule with the given name."""
        rows = [order[device, :number].tolist() for device, number in enumerate(self.count.tolist())]
        return Schedule(self.units.schedule(rows).orders, name)


def _moments(schedule: Schedule, device: DeviceId, length: int) -> tuple[IntArray, IntArray]:
    """Return the micro-batches in flight at each moment that may need the most memory, as two arrays (moments, stages).

    The first counts micro-batches that wait for their B, the second those that wait for their W; chains have `length`
    stages, and those of all chains at one position are added up.
    """
    found = fullest(schedule, device)
    rows = np.zeros((2, len(found), length), np.int64)
    for at, in_flight in enumerate(asking(found, SHORT)):
        for (kind, stage), number in in_flight.items():
            rows[0 if kind is F else 1, at, stage % length] += number
    return rows[0], rows[1]
