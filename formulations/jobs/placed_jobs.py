"""A schedule of jobs with start times, and the longest path from each job to the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from formulations.jobs.jobs import Jobs
from formulations.jobs.quantities import JobId, TimeSteps
from pipesched.problem.network.task_network import Resource


@dataclass(frozen=True)
class PlacedJobs:
    """A schedule of jobs, and the precedences from which its longest paths follow; all times are in steps of time.

    `orders` has the job numbers on each resource in order, `start` the start of each job that runs. `opening[d]` is the
    time from which the value of device d counts: 0 unless the objective is the span. No job of the device starts before
    it; the first one may start later. `before[n]` has the predecessors and `after[n]` the successors of job n among the
    jobs that run, as pairs (job, lag): the lag is the least time from the end of the earlier job to the start of the
    later one. The orders of resources are not among these. `waits` are pairs of jobs that keep the memory within its
    capacity: the first ends before the second starts.
    """

    jobs: Jobs
    orders: Mapping[Resource, Sequence[JobId]]
    start: Mapping[JobId, TimeSteps]
    opening: Sequence[TimeSteps]
    before: Mapping[JobId, Sequence[tuple[JobId, TimeSteps]]]
    after: Mapping[JobId, Sequence[tuple[JobId, TimeSteps]]]
    waits: Sequence[tuple[JobId, JobId]]

    def end(self, n: JobId) -> TimeSteps:
        return self.start[n] + self.jobs.jobs[n].steps

    @cached_property
    def value(self) -> TimeSteps:
        """The objective in steps: the longest time from a device's opening to its end."""
        return max((self.end(n) - self.first_opening(n) for n in self.start), default=0)

    def opened(self, n: JobId) -> TimeSteps:
        """Return the step at which the last of the devices opens whose streams a job occupies."""
        return opened(self.jobs, self.opening, n)

    def first_opening(self, n: JobId) -> TimeSteps:
        """Return the step at which the first of the devices opens whose streams a job occupies."""
        return min(self.opening[device] for device in self.jobs.devices(n))

    @cached_property
    def next_on_resource(self) -> Mapping[JobId, Sequence[JobId]]:
        """For each job, the job directly after it on each of its resources; no entry if there is none."""
        found: dict[int, list[int]] = {}
        for order in self.orders.values():
            for one, other in pairwise(order):
                found.setdefault(one, []).append(other)
        return found

    @cached_property
    def tails(self) -> Mapping[JobId, TimeSteps]:
        """For each job, the longest path from its end to the end of a device, less the opening of that device.

        In steps.
        """
        found: dict[int, int] = {}
        waiting: dict[int, list[tuple[int, int]]] = {}
        for before, after in self.waits:
            waiting.setdefault(before, []).append((after, 0))
        # Every job takes at least one step, so successors start later.
        for n in sorted(self.start, key=lambda n: -self.start[n]):
            lengths = [-self.first_opening(n)]
            following = [*self.after[n], *waiting.get(n, ())]
            following += [(other, 0) for other in self.next_on_resource.get(n, ())]
            lengths += [lag + self.jobs.jobs[a].steps + found[a] for a, lag in following]
            found[n] = max(lengths)
        return found


def opened(jobs: Jobs, opening: Sequence[TimeSteps], n: JobId) -> TimeSteps:
    """Return the step at which the last of the devices opens whose streams job `n` occupies.

    `opening[d]` is the step at which device d opens.
    """
    return max(opening[device] for device in jobs.devices(n))
