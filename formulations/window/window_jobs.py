"""The jobs of a schedule that start in a window of time, with their precedences and the effect of the jobs outside."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

from formulations.jobs.jobs import JobMemory, Jobs, Precedence
from formulations.jobs.placed_jobs import PlacedJobs
from formulations.jobs.quantities import JobId, PoolId, TimeSteps
from formulations.window.open_choices import arcs_of_idle_jobs, idle_jobs, open_choices
from pipesched.problem.network.task_network import Resource
from pipesched.problem.quantities import DeviceId, MemorySteps


class WindowJobs:
    """The jobs of the schedule `placed` that start from `since` to before `until` (steps), as a problem of their own.

    Devices not in `free` keep their orders. `inside[m]` is the number in the schedule of job m of `jobs`. Where the
    forward of an activation, its copies or its recomputation and its backward are all inside on free devices, its mode
    is open: the jobs of the other modes, which do not currently run, are inside as well. Modes of backwards and of
    gathers stay.
    """

    def __init__(self, placed: PlacedJobs, since: TimeSteps, until: TimeSteps, free: Collection[DeviceId]) -> None:
        self.placed, self.since, self.until, self._free = placed, since, until, free
        self.inside = [n for n in placed.start if since <= placed.start[n] < until]
        self._open = set(open_choices(placed, self.inside, free))
        self._idle = idle_jobs(placed, self._open)
        self.inside += self._idle
        self._number = {n: number for number, n in enumerate(self.inside)}
        self.jobs = self._own_jobs()

    def _own_jobs(self) -> Jobs:
        """Return the jobs inside with precedences and memory changes.

        Orders and waits that are kept become precedences.
        """
        placed, inside = self.placed, self._number
        arcs = [(b, n, lag) for n in self.inside for b, lag in placed.before.get(n, ()) if b in inside]
        arcs += arcs_of_idle_jobs(placed.jobs, self._idle, inside)
        arcs += [(b, n, 0) for b, n in self.kept_waits if b in inside and n in inside]
        for where, order in placed.orders.items():
            if not all(device in self._free for device in placed.jobs.devices_on(where)):
                arcs += [(b, n, 0) for b, n in pairwise(n for n in order if n in inside)]
        precedences = tuple(Precedence(inside[n], (inside[b],), lag) for b, n, lag in arcs)
        whole = (placed.jobs.jobs[n] for n in self.inside)
        jobs = tuple(job if job.choice in self._open else job._replace(choice=None) for job in whole)
        running = placed.start.keys() | set(self._idle)
        holdings = [one for one in placed.jobs.holdings if self._is_free(one.pool) and one.where in running]
        own = [found for one in holdings if (found := self._inside_of(one)) is not None]
        # In an iteration in progress micro-batches differ, whatever part of it the window has.
        alike = placed.jobs.renumbered and not placed.jobs.release
        return replace(
            placed.jobs,
            jobs=jobs,
            precedences=precedences,
            holdings=tuple(own),
            release=(),
            renumbered=alike,
        )

    def _is_free(self, pool: PoolId) -> bool:
        """True if all devices that use a memory pool are free: their passes may be reordered."""
        return all(device in self._free for device in self.placed.jobs.pools[pool])

    def _inside_of(self, one: JobMemory) -> JobMemory | None:
        """Return the part of a pass's memory changes that falls inside the window, in the window's job numbers.

        None if none does.
        """
        inside = self._number
        takes = one.takes if all(n in inside for n in one.first) else 0
        ended = [n for n in one.last if n not in inside and self.placed.start[n] < self.since]
        within = [n for n in one.last if n in inside]
        gives = one.gives if within and len(ended) + len(within) == len(one.last) else 0
        if not takes and not gives:
            return None
        first, last = (tuple(inside[n] for n in on if n in inside) for on in (one.first, one.last))
        where = inside.get(one.where, (first or last)[0])
        return JobMemory(one.pool, takes, gives, first or last, last, where)

    def memory_before(self, pool: PoolId, taker: JobId) -> MemorySteps:
        """Return the memory that passes outside the window occupy in a pool when job `taker` of the window starts.

        These passes begin before the window. Memory that they release counts as free if the release has ended when the
        job currently starts; the job then waits for it.
        """
        placed, begin = self.placed, self._begun(self.inside[taker])
        level = 0
        for one in self._outside[pool]:
            level += one.takes if placed.start[one.first[0]] < self.since else 0
            level -= one.gives if max(map(placed.end, one.last)) <= begin else 0
        return level

    def _begun(self, n: JobId) -> TimeSteps:
        """Return the current start of a job in steps; the beginning of the window if it does not run."""
        return self.placed.start.get(n, self.since)

    @cached_property
    def _outside(self) -> Mapping[PoolId, Sequence[JobMemory]]:
        """For each memory pool, the memory changes of passes that happen before the window; later ones count 0."""
        placed, found = self.placed, dict[int, list[JobMemory]]()
        for one in placed.jobs.holdings:
            if one.where in placed.start:
                took = one.takes if placed.start[one.first[0]] < self.since else 0
                gave = one.gives if all(placed.start[n] < self.since for n in one.last) else 0
                if took or gave:
                    found.setdefault(one.pool, []).append(one._replace(takes=took, gives=gave))
        return {pool: found.get(pool, []) for pool in range(len(placed.jobs.pools))}

    @cached_property
    def kept_waits(self) -> Sequence[tuple[JobId, JobId]]:
        """The waits for memory that stay as they are, as pairs (job, job that waits for its end).

        They are all waits in pools that devices not in `free` use; and in the others those whose waiting job is outside
        the window.
        """
        pool_of, device = self.placed.jobs.taken_by, self.placed.jobs.device
        return [
            (b, n)
            for b, n in self.placed.waits
            if n not in self._number or not self._is_free(pool_of.get(n, device(n)))
        ]

    def earliest(self) -> dict[JobId, TimeSteps]:
        """Return the earliest start in steps of each job inside, by its number in the schedule.

        It follows from the device's opening, the release time, the jobs before the window that it waits for, and the
        releases of memory there that `memory_before` counts.
        """
        placed, found = self.placed, dict[int, int]()
        begin: dict[Resource, int] = {}
        for where, order in placed.orders.items():
            ahead = bisect_left(order, self.since, key=placed.start.__getitem__)
            last = order[ahead - 1 : ahead] if ahead else ()
            begin[where] = max(map(placed.end, last), default=0)
        waited: dict[int, list[tuple[int, int]]] = {}
        for b, n, lag in arcs_of_idle_jobs(placed.jobs, self._idle, placed.start.keys() | set(self._idle)):
            if b in placed.start and b not in self._number:
                waited.setdefault(n, []).append((b, lag))
        for n in self.inside:
            arcs = (*placed.before.get(n, ()), *waited.get(n, ()))
            ends = [placed.end(b) + lag for b, lag in arcs if b not in self._number]
            ends += [begin.get(where, 0) for where in placed.jobs.jobs[n].resources]
            found[n] = max([placed.opened(n), placed.jobs.released(n), *ends])
        for before, n in self.kept_waits:
            if n in found and before not in found:
                found[n] = max(found[n], placed.end(before))
        for one in self.jobs.holdings:
            if one.takes:
                # Memory that `memory_before` counts as freed before the window must have been freed.
                n = self.inside[one.first[0]]
                freed = [max(map(placed.end, other.last)) for other in self._outside[one.pool] if other.gives]
                freed += [placed.end(m) for m in self._ended_before[one.pool]]
                found[n] = max([found[n], *(end for end in freed if end <= self._begun(n))])
        return found

    @cached_property
    def _ended_before(self) -> Mapping[PoolId, Sequence[JobId]]:
        """For each free memory pool, the jobs before the window of passes that free some of its memory inside."""
        found: dict[int, list[int]] = {pool: [] for pool in range(len(self.placed.jobs.pools)) if self._is_free(pool)}
        for one in self.placed.jobs.holdings:
            if (
                one.gives
                and one.where in self.placed.start
                and one.pool in found
                and any(n in self._number for n in one.last)
            ):
                found[one.pool] += [n for n in one.last if self.placed.start[n] < self.since]
        return found

    def tails(self) -> dict[JobId, TimeSteps]:
        """Return, for each job inside, the longest path in steps from its end to a device's end.

        The path runs through jobs after the window; the device's opening time is subtracted. Keys are numbers in the
        schedule.
        """
        placed = self.placed
        found: dict[int, int] = {}
        first_after = {
            where: next(iter(order[bisect_left(order, self.until, key=placed.start.__getitem__) :]), None)
            for where, order in placed.orders.items()
        }
        for n in self.inside:
            following = [(a, lag) for a, lag in placed.after.get(n, ()) if a not in self._number]
            for where in placed.jobs.jobs[n].resources:
                last = first_after.get(where)
                following += [(last, 0)] if last is not None else []
            lengths = (lag + placed.jobs.jobs[a].steps + placed.tails[a] for a, lag in following)
            found[n] = max([-placed.first_opening(n), *lengths])
        for n, after in self.kept_waits:
            if n in found and after not in found:
                found[n] = max(found[n], placed.jobs.jobs[after].steps + placed.tails[after])
        return found
