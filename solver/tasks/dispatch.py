"""List scheduling at task level: a free stream starts the ready task of the lowest rank.

Where memory is limited, a given order of passes determines which releases of memory each pass waits for, so that the
schedule never deadlocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import heappop, heappush

from formulations.jobs.gathers import grouped_as
from formulations.jobs.jobs import JobMemory, Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.quantities import JobId, TimeSteps
from formulations.jobs.schedule_of_starts import schedule_of_starts
from pipesched.deadline import ask
from pipesched.errors import Deadlock
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import B, Pass, W
from pipesched.problem.passes_alone import passes_alone
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps
from pipesched.schedule.once_an_iteration import completed
from pipesched.schedule.schedule import Schedule, schedule_of
from solver.construction.list_scheduling import list_schedules
from solver.tasks.job_graph import JobArc, JobGraph, arcs_of_orders, graph_of, orders_of, running_of


def dispatched(graph: JobGraph, rank: Mapping[JobId, float]) -> dict[JobId, TimeSteps]:
    """Return the start of each job in steps, where a free stream always starts the ready job of the lowest rank.

    No stream waits for a job of better rank. A job on several streams, once chosen, waits until all of them are free,
    and none of them runs another job until then. `rank` is by job number.
    """
    jobs = graph.jobs.jobs
    missing = {n: len(graph.before[n]) for n in graph.running}
    begin = dict.fromkeys(graph.running, 0)
    ready: dict[Resource, list[tuple[float, int]]] = {where: [] for where in graph.jobs.on}
    free = dict.fromkeys(graph.jobs.on, 0)
    # Times at which a job becomes ready, or a resource becomes free.
    events: list[tuple[int, int, int | Resource]] = [(0, 0, n) for n in graph.running if missing[n] == 0]
    starts: dict[int, int] = {}
    while events:
        ask()
        now = events[0][0]
        touched: set[Resource] = set()
        while events and events[0][0] == now:
            _, _, what = heappop(events)
            if isinstance(what, int):
                for where in jobs[what].resources:
                    heappush(ready[where], (rank[what], what))
                    touched.add(where)
            else:
                touched.add(what)
        for where in sorted(touched):
            while ready[where] and ready[where][0][1] in starts:
                heappop(ready[where])
            if not ready[where] or free[where] > now:
                continue
            n = heappop(ready[where])[1]
            # A job on several streams starts when all of them are free; until then none runs another task.
            starts[n] = max(now, *(free[one] for one in jobs[n].resources))
            end = starts[n] + jobs[n].steps
            for one in jobs[n].resources:
                free[one] = end
                heappush(events, (end, 1, one))
            for later, lag in graph.after[n]:
                begin[later] = max(begin[later], end + lag)
                missing[later] -= 1
                if missing[later] == 0:
                    heappush(events, (begin[later], 0, later))
    return starts


def memory_waits(jobs: Jobs, schedule: Schedule) -> list[JobArc]:
    """Return arcs by which each pass that takes memory waits for enough memory to be freed, for an order that fits.

    An arc is (job, job that waits for its end, lag in steps). Passes that take from one pool do so in the order of the
    schedule, so what one waits for delays the later ones too. Passes of devices that share a host's memory are ordered
    by their places in the orders of their devices.
    """
    passes, of_pass = schedule.pass_set, dict[tuple[int, Pass], list[JobMemory]]()
    for one in jobs.holdings:
        if jobs.jobs[one.where].task.of in passes:
            of_pass.setdefault((one.pool, jobs.jobs[one.first[0]].task.of), []).append(one)
    found: list[JobArc] = []
    for pool, room in enumerate(jobs.room):
        if room is not None:
            places = ((n, p) for device in jobs.pools[pool] for n, p in enumerate(schedule.passes_on(device)))
            holdings = (of_pass.get((pool, p), ()) for _, p in sorted(places))
            found += _waits_of_order([one for own in holdings for one in own], room)
    return found


def _waits_of_order(holdings: Sequence[JobMemory], room: MemorySteps) -> Iterator[JobArc]:
    """Yield the arcs by which passes wait for releases and for each other.

    Passes take from a memory in the order of `holdings`. `room` is its capacity in steps of memory.
    """
    level, last = 0, None
    given: list[JobMemory] = []
    for own in holdings:
        if own.takes:
            level += own.takes
            while level > room and given:
                giver = given.pop(0)
                level -= giver.gives
                yield from ((one, other, 0) for one in giver.last for other in own.first)
            if last is not None:
                yield from ((last.first[0], other, 0) for other in own.first)
            last = own
        if own.gives:
            given.append(own)


def _in_passes_of(jobs: Jobs, schedule: Schedule) -> Schedule:
    """Return the order in passes that have jobs: where BW has none, each is replaced by B directly followed by W."""
    with_jobs = {job.task.of for job in jobs.jobs}
    orders = []
    for device in range(jobs.problem.devices):
        order: list[Pass] = []
        for p in schedule.passes_on(device):
            order += [p] if p in with_jobs else [p._replace(kind=B), p._replace(kind=W)]
        orders.append(order)
    return completed(jobs.problem, schedule_of(orders, schedule.name))


def expanded(jobs: Jobs, schedule: Schedule) -> Iterator[Schedule]:
    """Yield up to three orders of tasks from one order of passes, which also decides which passes get memory first.

    Two of them start tasks as they become ready, those with the longest tail first, or those earliest in the order of
    passes; the third keeps the order of passes on every stream. Orders that deadlock or exceed the memory are left out.
    """
    schedule = _in_passes_of(jobs, schedule)
    jobs = grouped_as(jobs, schedule)
    running = running_of(jobs, schedule)
    waits = memory_waits(jobs, schedule)
    try:
        graph = graph_of(jobs, running, waits)
    except Deadlock:
        return
    place = {p: n for device in range(jobs.problem.devices) for n, p in enumerate(schedule.passes_on(device))}
    tails = graph.tails()
    ranks = (
        {n: -tail for n, tail in tails.items()},
        {n: place[jobs.jobs[n].task.of] for n in running},
    )
    found = [dispatched(graph, rank) for rank in ranks]
    with suppress(Deadlock):
        found.append(graph_of(jobs, running, [*waits, *arcs_of_orders(orders_of(jobs, schedule).values())]).heads())
    for starts in found:
        whole = schedule_of_starts(jobs, starts, schedule.name)
        if whole is not None:
            yield whole


def listed(problem: Problem) -> Iterator[Schedule]:
    """Yield list schedules: of passes if the problem is a plain pipeline, else expanded to orders of tasks.

    Yields nothing if activations may be offloaded or recomputed.
    """
    if problem.view is not None:
        yield from list_schedules(problem)
    elif not problem.network.has_activation_modes:
        jobs = jobs_of(problem)
        with suppress(Deadlock):
            for order in list_schedules(passes_alone(problem)):
                yield from expanded(jobs, order)
