"""Schedules of jobs with times in steps, from which windows of jobs are cut and into which they are put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from formulations.jobs.gathers import grouped_as
from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.placed_jobs import PlacedJobs, opened
from formulations.jobs.quantities import JobId, TimeSteps
from formulations.jobs.schedule_of_starts import schedule_of_starts
from formulations.window.window_jobs import WindowJobs
from pipesched.errors import Deadlock
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Task
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import device_reach
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from solver.tasks.dispatch import expanded
from solver.tasks.job_graph import arcs_of_orders, graph_of, in_microbatch_order, orders_of, running_of


def jobs_placed_as(problem: Problem, timeline: Timeline | None) -> PlacedJobs | None:
    """Return the problem's jobs with the orders of a timeline, at their earliest starts (`placed_in`).

    None without a timeline, or if its memory is not safe for other timings.
    """
    return None if timeline is None else placed_in(jobs_of(problem), timeline)


def placed_in(jobs: Jobs, timeline: Timeline) -> PlacedJobs | None:
    """Return the jobs of a timeline at their earliest starts, with full backwards split where that is never worse.

    If a full backward has no job, the best of up to three orders of tasks made from its order of passes is returned.
    None if the memory is not safe for other timings.
    """
    schedule, opening = timeline.schedule, _openings(jobs, timeline)
    if not all(Task(p) in jobs.number for p in schedule.pass_set):
        found = (placed_in(jobs, simulate(jobs.problem, one)) for one in expanded(jobs, schedule))
        return min((one for one in found if one is not None), key=lambda one: one.value, default=None)
    jobs = grouped_as(jobs, schedule)
    waits = [(jobs.number[wait.before], jobs.number[wait.after], 0) for wait in schedule.waits]
    in_order = arcs_of_orders(orders_of(jobs, schedule).values())
    graph = graph_of(jobs, running_of(jobs, schedule), [*waits, *in_order])
    return placed_at(jobs, graph.heads(lambda n: max(opened(jobs, opening, n), jobs.released(n))), opening)


def placed_at(jobs: Jobs, starts: Mapping[JobId, TimeSteps], opening: Sequence[TimeSteps]) -> PlacedJobs | None:
    """Return the jobs in the orders that these starts give, at their earliest starts, with the waits that memory needs.

    `starts` has the step of each job, `opening[d]` the first step of device d. Equal jobs are put in micro-batch order.
    None if the memory is not safe for other timings.
    """
    schedule = schedule_of_starts(jobs, in_microbatch_order(jobs, starts))
    if schedule is None:
        return None
    orders = orders_of(jobs, schedule)
    waits = _waits(jobs, schedule, orders)
    bare = graph_of(jobs, starts)
    whole = graph_of(jobs, starts, [*((one, other, 0) for one, other in waits), *arcs_of_orders(orders.values())])
    start = whole.heads(lambda n: max(opened(jobs, opening, n), jobs.released(n)))
    return PlacedJobs(jobs, orders, start, opening, bare.before, bare.after, waits)


def schedule_of(placed: PlacedJobs, name: str) -> Schedule | None:
    """Return the schedule of placed jobs, with the waits that memory needs; None if some timing exceeds memory."""
    return schedule_of_starts(placed.jobs, placed.start, name)


def put_back(window: WindowJobs, inside: Mapping[JobId, TimeSteps]) -> PlacedJobs | None:
    """Return the schedule with the jobs of a window at new starts (steps), and all later jobs as early as possible.

    Jobs of the window without a start in `inside` do not run. None if the waits outside of the window no longer allow
    it, or if the memory is not safe for other timings.
    """
    placed = window.placed
    jobs, opening = placed.jobs, placed.opening
    left_out = set(window.inside) - inside.keys()
    starts = {n: inside.get(n, start) for n, start in placed.start.items() if n not in left_out} | dict(inside)
    added = [n for n in inside if n not in placed.start]

    def begins(n: JobId) -> tuple[int, int]:
        return _part(window, n), starts[n]

    running = {where: [n for n in order if n in starts] for where, order in placed.orders.items()}
    for n in added:
        for where in jobs.jobs[n].resources:
            running.setdefault(where, []).append(n)
    orders = {where: sorted(order, key=begins) for where, order in running.items()}
    waits = [(one, other, 0) for one, other in window.kept_waits if one in starts and other in starts]
    try:
        graph = graph_of(jobs, starts, [*waits, *arcs_of_orders(orders.values())])
    except Deadlock:
        # A wait after the window depends on a job that no longer runs.
        return None

    def release(n: JobId) -> TimeSteps:
        if n in inside or placed.start[n] < window.since:
            return starts[n]
        return max(opened(jobs, opening, n), jobs.released(n))

    return placed_at(jobs, graph.heads(release), opening)


def _part(window: WindowJobs, n: JobId) -> int:
    """Return 0 for a job that starts before the window's interval, 1 within it, 2 after it; a new job is within it."""
    begun = window.placed.start.get(n, window.since)
    return 0 if begun < window.since else 1 if begun < window.until else 2


def _openings(jobs: Jobs, timeline: Timeline) -> list[TimeSteps]:
    """Return the step from which each device's time counts: its first start under the span, else 0."""
    devices = range(jobs.problem.devices)
    if not jobs.problem.objective.by_device:
        return [0 for _ in devices]
    finer = jobs.problem.tick / timeline.problem.tick
    return [int(device_reach(timeline, device)[0] * jobs.scale / finer) for device in devices]


def _waits(jobs: Jobs, schedule: Schedule, orders: Mapping[Resource, Sequence[JobId]]) -> list[tuple[JobId, JobId]]:
    """Return the schedule's waits as (job, later job), such that they suffice if the releasing stream is reordered.

    Each wait is listed, and repeated for the earlier jobs of that stream that release memory, except those up to the
    job of a previous wait between the same two streams: the waiting stream, whose order is taken to stay, has waited
    for them.
    """
    # Of jobs on several streams the place on the first.
    place = {
        n: at for where, order in orders.items() for at, n in enumerate(order) if jobs.jobs[n].resources[0] == where
    }
    gives = {n for one in jobs.holdings if one.gives for n in one.last}
    pairs = [(jobs.number[wait.before], jobs.number[wait.after]) for wait in schedule.waits]

    def streams(pair: tuple[JobId, JobId]) -> tuple[Resource, Resource]:
        return jobs.jobs[pair[0]].resources[0], jobs.jobs[pair[1]].resources[0]

    found = list[tuple[int, int]]()
    for (here, _), group in groupby(sorted(pairs, key=lambda pair: (streams(pair), place[pair[1]])), key=streams):
        seen = 0
        for one, other in group:
            upto = place[one] + 1
            found += [(n, other) for n in orders[here][seen:upto] if n in gives or n == one]
            seen = max(seen, upto)
    return found
