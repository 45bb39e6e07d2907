"""Jobs with times: a schedule at task level as windows see it, and how long what follows a job takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from formulations.jobs.jobs import Jobs
from pipesched.problem.network.task_network import Resource


@dataclass(frozen=True)
class PlacedJobs:
    """A schedule as jobs with times, in steps: the order of each resource, all starts, and where each device opens.

    `before[n]` and `after[n]` are the (job, lag) next to it, whatever the orders; `waits` are the (job, job) that
    memory rests on: the first has ended before the second starts.
    """

    jobs: Jobs
    orders: Mapping[Resource, Sequence[int]]
    start: Mapping[int, int]
    opening: Sequence[int]
    before: Mapping[int, Sequence[tuple[int, int]]]
    after: Mapping[int, Sequence[tuple[int, int]]]
    waits: Sequence[tuple[int, int]]

    def end(self, n: int) -> int:
        return self.start[n] + self.jobs.jobs[n].steps

    @cached_property
    def value(self) -> int:
        """The longest time from a device's opening to its end."""
        return max((self.end(n) - self.opening[self.jobs.device(n)] for n in self.start), default=0)

    @cached_property
    def behind(self) -> Mapping[int, int]:
        """The job that follows each on its resource."""
        return dict(pair for order in self.orders.values() for pair in pairwise(order))

    @cached_property
    def tails(self) -> Mapping[int, int]:
        """From each job's end, the most that any device takes past its opening."""
        found: dict[int, int] = {}
        held_back: dict[int, list[tuple[int, int]]] = {}
        for before, after in self.waits:
            held_back.setdefault(before, []).append((after, 0))
        # Every job takes a step, so what follows starts later.
        for n in sorted(self.start, key=lambda n: -self.start[n]):
            ways = [-self.opening[self.jobs.device(n)]]
            following = [*self.after[n], *held_back.get(n, ())]
            following += [(self.behind[n], 0)] if n in self.behind else []
            ways += [lag + self.jobs.jobs[a].steps + found[a] for a, lag in following]
            found[n] = max(ways)
        return found
