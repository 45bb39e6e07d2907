"""Precedence graph of the jobs that run, with longest paths: heads, tails, and start times of given orders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise

from formulations.jobs.gathers import gaps_without_end
from formulations.jobs.jobs import Jobs
from formulations.jobs.quantities import JobId, TimeSteps
from pipesched.deadline import SHORT, asking
from pipesched.errors import Deadlock
from pipesched.problem.network.task_network import Resource
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.stream_orders import stream_orders

# (before, after, lag): job `after` starts at least `lag` steps after the end of job `before`.
JobArc = tuple[JobId, JobId, TimeSteps]


@dataclass(frozen=True)
class JobGraph:
    """Precedence graph of jobs.

    `running` are the jobs of the chosen modes, ascending; `before[n]` and `after[n]` are the (job, lag in steps) pairs
    before and after job n; `sequence` is a topological order.
    """

    jobs: Jobs
    running: Sequence[JobId]
    before: Mapping[JobId, Sequence[tuple[JobId, TimeSteps]]]
    after: Mapping[JobId, Sequence[tuple[JobId, TimeSteps]]]
    sequence: Sequence[JobId] = field(repr=False)

    def heads(self, release: Callable[[JobId], TimeSteps] = lambda _: 0) -> dict[JobId, TimeSteps]:
        """Return the earliest start of each job in steps by precedences alone, not before `release(job)`."""
        found: dict[int, int] = {}
        for n in self.sequence:
            ends = (found[b] + self.jobs.jobs[b].steps + lag for b, lag in self.before[n])
            found[n] = max([release(n), *ends])
        return found

    def tails(self) -> dict[JobId, TimeSteps]:
        """Return the longest path in steps from each job's end to the end of all."""
        found: dict[int, int] = {}
        for n in reversed(self.sequence):
            paths = (lag + self.jobs.jobs[a].steps + found[a] for a, lag in self.after[n])
            found[n] = max(paths, default=0)
        return found


def graph_of(jobs: Jobs, running: Collection[JobId], further: Iterable[JobArc] = ()) -> JobGraph:
    """Return the precedence graph of the jobs `running`, with `further` arcs.

    Raises `Deadlock` if jobs wait for each other in a cycle.
    """
    before: dict[int, list[tuple[int, int]]] = {n: [] for n in sorted(running)}
    after: dict[int, list[tuple[int, int]]] = {n: [] for n in before}
    arcs = (
        (alternative, precedence.after, precedence.lag)
        for precedence in jobs.precedences
        if precedence.after in before
        for alternative in precedence.alternatives
        if alternative in before
    )
    dropped = ((one, other, 0) for one, other in gaps_without_end(jobs, before))
    for one, other, lag in asking(chain(arcs, dropped, further), SHORT):
        before[other].append((one, lag))
        after[one].append((other, lag))
    try:
        sequence = list(TopologicalSorter({n: [one for one, _ in needs] for n, needs in before.items()}).static_order())
    except CycleError as error:
        # The cycle in the error has each job before its successor, and the first job again at the end.
        raise Deadlock([str(jobs.jobs[n].task) for n in error.args[1][:0:-1]]) from None
    return JobGraph(jobs, list(before), before, after, sequence)


def arcs_of_orders(orders: Iterable[Sequence[JobId]]) -> list[JobArc]:
    """Return the arcs (job, next job of its order, lag 0) by which each job waits for the one before it."""
    return [(one, other, 0) for order in orders for one, other in pairwise(order)]


def running_of(jobs: Jobs, schedule: Schedule) -> list[JobId]:
    """Return the numbers of the jobs that belong to the passes of a schedule, ascending."""
    passes = schedule.pass_set
    return [n for n, job in enumerate(jobs.jobs) if job.task.of in passes]


def orders_of(jobs: Jobs, schedule: Schedule) -> dict[Resource, list[JobId]]:
    """Return the order of jobs on every stream: the schedule's order of tasks or, if it has none, pass by pass.

    Raises `Deadlock` if a task that occupies streams of several devices has no place in their orders.
    """
    orders = stream_orders(jobs.problem, schedule)
    return {where: [jobs.number[task] for task in tasks] for where, tasks in orders.items()}


def with_modes(jobs: Jobs, fused: bool) -> list[JobId]:
    """Return the jobs that run if every backward that has both modes is full (`fused`), or if every one is split.

    They are ascending. The problem must have no other modes to choose, such as those of activations.
    """
    return [n for n, job in enumerate(jobs.jobs) if job.choice is None or job.option == fused]


def in_microbatch_order(jobs: Jobs, starts: Mapping[JobId, TimeSteps]) -> dict[JobId, TimeSteps]:
    """Return the starts sorted among equal jobs of identical micro-batches, so that they are in micro-batch order."""
    following, found = dict(jobs.consecutive), dict(starts)
    for first in starts.keys() - following.values():
        line = [first]
        while line[-1] in following:
            line.append(following[line[-1]])
        found.update(zip(line, sorted(starts[n] for n in line), strict=True))
    return found
