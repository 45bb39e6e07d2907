"""Jobs of a schedule as units of annealing: a stream counts as a device, and one of a device has its memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from formulations.jobs.placed_jobs import PlacedJobs
from formulations.jobs.quantities import PoolId
from pipesched.problem.network.task_network import TaskType
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.local_search.equal_value import EqualValueSearch
from solver.local_search.portfolio import Start, passes_of
from solver.local_search.units.order_units import Orders, UnitId, Units
from solver.tasks.job_graph import arcs_of_orders, graph_of
from solver.tasks.placing import jobs_placed_as, placed_at, schedule_of


class JobUnits:
    """Jobs of the schedule `placed` as units for annealing, by number, with streams in place of devices.

    Times are in steps, of which a tick has `scale`. `tasks[n]` is the task of unit n, `device[n]` the index of its
    stream, `ticks[n]` its duration, `needs[n]` the (unit, lag) pairs of its predecessors, `takes[n]` the memory that it
    takes at its start and `gives[n]` what it frees at its end; units of one `line` keep their order, as do jobs that
    free memory together. By stream, `orders` has its units, `owner` its device, `openings` the opening of that. Raises
    `ValueError` if a job occupies several streams, or unless each limited memory is taken and freed on one stream,
    whose order then determines its level.
    """

    def __init__(self, placed: PlacedJobs) -> None:
        jobs, self._placed = placed.jobs, placed
        if jobs.problem.network.occupies_several:
            raise ValueError("jobs that occupy several streams")
        self._running = sorted(placed.start)
        self._number = {n: unit for unit, n in enumerate(self._running)}
        self._streams = sorted(placed.orders)
        number = {where: unit for unit, where in enumerate(self._streams)}
        self.device = [number[jobs.jobs[n].resources[0]] for n in self._running]
        self.owner = [where.device for where in self._streams]
        self.tasks, self.scale = [jobs.jobs[n].task for n in self._running], jobs.scale
        self.ticks = [jobs.jobs[n].steps for n in self._running]
        self.needs = [[(self._number[b], lag) for b, lag in placed.before[n]] for n in self._running]
        lines: dict[TaskType, int] = {}
        types = [TaskType(*task.of[:2], task.part) for task in self.tasks]
        self.line = [lines.setdefault(one, len(lines)) for one in types]
        self.takes, self.gives = ([0] * len(self._running) for _ in range(2))
        self._room: list[int | None] = [None] * len(self._streams)
        with_memory = set[int]()
        for pool in sorted(range(len(jobs.room)), key=lambda pool: jobs.room[pool] is None):
            with_memory |= self._hold(pool, with_memory)
        self.orders: Orders = [[self._number[n] for n in placed.orders[where]] for where in self._streams]
        self.openings = [placed.opening[where.device] for where in self._streams]

    @property
    def room(self) -> Sequence[MemorySteps | None]:
        """Capacity of the memory that each stream takes and releases, in steps of memory; None without a limit."""
        return self._room

    def _hold(self, pool: PoolId, with_memory: Collection[int]) -> set[int]:
        """Assign a memory pool to the one stream whose jobs take and release it; return that stream as a set.

        A pool cannot be assigned if several streams use it, if its stream is already in `with_memory`, or if several
        jobs of a pass take from it. Then a pool without a limit is ignored, and the set is empty; for a limited one
        `ValueError` is raised. Its amounts are added to `takes` and `gives`, and jobs that free it together get arcs in
        their order.
        """
        placed, room = self._placed, self._placed.jobs.room[pool]
        found = [one for one in placed.jobs.holdings if one.pool == pool and one.where in placed.start]
        streams = {self.device[self._number[n]] for one in found for n in (one.first if one.takes else ())}
        streams |= {self.device[self._number[n]] for one in found for n in (one.last if one.gives else ())}
        if len(streams) > 1 or streams & set(with_memory) or any(one.takes and len(one.first) > 1 for one in found):
            if room is None:
                return set()
            raise ValueError("memory that several streams or jobs take or give back")
        for one in found:
            if one.takes:
                self.takes[self._number[one.first[0]]] += one.takes
            if one.gives:
                last = [self._number[n] for n in sorted(one.last, key=placed.start.__getitem__)]
                for before, after in pairwise(last):
                    self.needs[after].append((before, 0))
                self.gives[last[-1]] += one.gives
        for stream in streams:
            self._room[stream] = room
        return streams

    def schedule(self, orders: Sequence[Sequence[UnitId]]) -> Schedule | None:
        """Return the schedule of these orders of units; None if its memory is not safe for other timings."""
        placed = self._placed
        named = [[self._running[unit] for unit in order] for order in orders]
        graph = graph_of(placed.jobs, placed.start, arcs_of_orders(named))
        starts = graph.heads(placed.opened)
        found = placed_at(placed.jobs, starts, placed.opening)
        return None if found is None else schedule_of(found, "optimised")


def start_of(problem: Problem, timeline: Timeline) -> Start | None:
    """Return the units that local search moves, and the opening of each of their devices.

    The units are passes, with openings in ticks; where passes have several tasks they are jobs, with the opening of
    each stream in steps. None, for passes of several tasks, if a task occupies several streams, if the order of one
    stream does not determine each limited memory, or if memory is not safe for other timings.
    """
    if problem.view is not None:
        return passes_of(timeline)
    units = _job_units(problem, timeline)
    return None if units is None else (units, units.openings)


def equal_value_search(timeline: Timeline) -> EqualValueSearch | None:
    """Return the search among orders of at most a timeline's value, of passes or jobs.

    None for passes of several tasks if parameters are gathered, if a task occupies several streams, if the order of one
    stream does not determine each limited memory, or if memory is not safe for other timings.
    """
    if timeline.problem.view is not None:
        return EqualValueSearch(timeline, Units(timeline.problem, timeline.schedule))
    gathered = any(stage.gather for stage in timeline.problem.stages)
    units = None if gathered else _job_units(timeline.problem, timeline)
    return None if units is None else EqualValueSearch(timeline, units)


def _job_units(problem: Problem, timeline: Timeline) -> JobUnits | None:
    placed = jobs_placed_as(problem, timeline)
    try:
        return None if placed is None else JobUnits(placed)
    except ValueError:
        return None
