"""The jobs of a schedule as units of the compiled annealing: each stream is a device, one of them with its memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from formulations.jobs.placed_jobs import PlacedJobs
from pipesched.problem.network.task_network import TaskType
from solver.local_search.units.order_units import Orders
from solver.tasks.job_graph import arcs_of_orders, graph_of


class JobUnits:
    """As `Units`, of jobs: `device[n]` counts the streams. What gives memory back together keeps its order.

    `ValueError` where memory is not all taken and given back by one stream, whose order then says that it holds.
    """

    def __init__(self, placed: PlacedJobs) -> None:
        jobs, self._placed = placed.jobs, placed
        self._running = sorted(placed.start)
        self._number = {n: unit for unit, n in enumerate(self._running)}
        self._streams = list(placed.orders)
        number = {where: unit for unit, where in enumerate(self._streams)}
        self.device = [number[jobs.jobs[n].resource] for n in self._running]
        self.ticks = [jobs.jobs[n].steps for n in self._running]
        self.needs = [[(self._number[b], lag) for b, lag in placed.before[n]] for n in self._running]
        lines: dict[TaskType, int] = {}
        types = [TaskType(*jobs.jobs[n].task.of[:2], jobs.jobs[n].task.part) for n in self._running]
        self.line = [lines.setdefault(one, len(lines)) for one in types]
        self.takes, self.gives = ([0] * len(self._running) for _ in range(2))
        self._room: list[int | None] = [None] * len(self._streams)
        for pool, room in enumerate(jobs.room):
            if room is not None:
                self._hold(pool, room)
        self.orders: Orders = [[self._number[n] for n in placed.orders[where]] for where in self._streams]
        self.openings = [placed.opening[where.device] for where in self._streams]

    @property
    def room(self) -> Sequence[int | None]:
        """The memory that each stream takes and gives back."""
        return self._room

    def _hold(self, pool: int, room: int) -> None:
        """What jobs take of a memory and give back, all of them on one stream."""
        placed, streams = self._placed, set[int]()
        for one in placed.jobs.holdings:
            if one.pool != pool or one.where not in placed.start:
                continue
            first = [self._number[n] for n in one.first]
            last = [self._number[n] for n in sorted(one.last, key=placed.start.__getitem__)]
            if one.takes and len(first) > 1:
                raise ValueError("memory that several jobs take")
            streams.update(self.device[n] for n in (first if one.takes else []) + (last if one.gives else []))
            if one.takes:
                self.takes[first[0]] += one.takes
            if one.gives:
                for before, after in pairwise(last):
                    self.needs[after].append((before, 0))
                self.gives[last[-1]] += one.gives
        if len(streams) > 1:
            raise ValueError("memory that several streams take or give back")
        for stream in streams:
            self._room[stream] = room

    def starts(self, orders: Sequence[Sequence[int]]) -> dict[int, int]:
        """The starts of jobs in these orders, in steps."""
        placed = self._placed
        named = [[self._running[unit] for unit in order] for order in orders]
        graph = graph_of(placed.jobs, placed.start, arcs_of_orders(named))
        return graph.heads(lambda n: placed.opening[placed.jobs.device(n)])
