"""The jobs of a schedule as units of the compiled annealing: each stream is a device, one of them with its memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from formulations.jobs.placed_jobs import PlacedJobs
from pipesched.problem.network.task_network import TaskType
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.local_search.portfolio import Start, passes_of
from solver.local_search.units.order_units import Orders
from solver.tasks.job_graph import arcs_of_orders, graph_of
from solver.tasks.placing import jobs_placed_as, placed_at, schedule_of


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

    def schedule(self, orders: Sequence[Sequence[int]]) -> Schedule | None:
        """The schedule of jobs in these orders; None where its memory is not safe on other timings."""
        placed = self._placed
        named = [[self._running[unit] for unit in order] for order in orders]
        graph = graph_of(placed.jobs, placed.start, arcs_of_orders(named))
        starts = graph.heads(lambda n: placed.opening[placed.jobs.device(n)])
        found = placed_at(placed.jobs, starts, placed.opening)
        return None if found is None else schedule_of(found, "optimised")


def start_of(problem: Problem, timeline: Timeline) -> Start | None:
    """What local search moves of a schedule of the problem: passes, or jobs where these may be several tasks.

    None where memory does not follow from the order of one stream.
    """
    if problem.network.one_task_each and not problem.network.options:
        return passes_of(timeline)
    placed = jobs_placed_as(problem, timeline)
    try:
        return None if placed is None else ((units := JobUnits(placed)), units.openings)
    except ValueError:
        return None
