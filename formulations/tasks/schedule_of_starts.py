"""A schedule from the starts of jobs: the order on every stream, and the waits between streams that memory rests on."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, islice

from formulations.tasks.jobs import Holding, Job, Jobs
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Pass, Slot
from pipesched.schedule.schedule import Schedule, Wait


def schedule_of_starts(jobs: Jobs, starts: Mapping[int, int], name: str = "") -> Schedule | None:
    """The schedule whose jobs start so (steps); None where its memory cannot be made safe for other durations.

    The waits are few: each is for what ended first of what must have ended.
    """
    running = {job.task: start for job, start in ((jobs.jobs[n], start) for n, start in starts.items())}
    orders: list[list[tuple[int, Pass]]] = [[] for _ in range(jobs.problem.devices)]
    first: dict[Pass, int] = {}
    for task, start in running.items():
        first[task.of] = min(start, first.get(task.of, start))
    for p, start in first.items():
        orders[jobs.problem.device(p)].append((start, p))
    slots: tuple[tuple[Slot, ...], ...] = tuple(tuple((p,) for _, p in sorted(order)) for order in orders)
    running_on = {where: [n for n in here if n in starts] for where, here in jobs.on.items()}
    streams = {where: sorted(here, key=starts.__getitem__) for where, here in running_on.items()}
    task_orders = {where: tuple(jobs.jobs[n].task for n in order) for where, order in streams.items() if order}
    waits: list[Wait] = []
    for pool in range(len(jobs.pools)):
        found = _Memory(jobs, starts, streams, pool).waits()
        if found is None:
            return None
        waits += found
    return Schedule(slots, name, task_orders, waits)


@dataclass
class _Gifts:
    """What a stream knows of passes that give back: `known` add up to `total`, of `unknown` it knows no end.

    `later` counts those that have been looked at, in the order of their ends.
    """

    later: int = 0
    total: int = 0
    known: list[Holding] = field(default_factory=list)
    unknown: list[Holding] = field(default_factory=list)


class _Memory:
    """The memory of one device or host under these starts."""

    def __init__(self, jobs: Jobs, starts: Mapping[int, int], streams: Mapping[Resource, list[int]], pool: int) -> None:
        self._jobs, self._starts, self._room = jobs, starts, jobs.room[pool]
        here = [one for one in jobs.holdings if one.pool == pool and one.where in starts]
        self._takers = sorted((one for one in here if one.takes), key=self._begin)
        self._begins = [self._begin(one) for one in self._takers]
        # What is taken again is not counted once more.
        self._taken_by = [0, *accumulate(0 if one.again else one.takes for one in self._takers)]
        self._streams = {self._job(n).resource for one in self._takers for n in one.first}
        self._givers = sorted((one for one in here if one.gives), key=self._end)
        self._ends = [self._end(one) for one in self._givers]
        self._place = {n: place for order in streams.values() for place, n in enumerate(order)}
        # Of each stream on which passes begin, up to which place of every stream all is known to have ended.
        self._seen: dict[Resource, dict[Resource, int]] = {}
        self._gifts: dict[Resource, _Gifts] = {}

    def _begin(self, one: Holding) -> int:
        return min(self._starts[n] for n in one.first)

    def _end(self, one: Holding) -> int:
        return max(self._starts[n] + self._jobs.jobs[n].steps for n in one.last)

    def waits(self) -> list[Wait] | None:
        """The waits that keep its memory; None if there are none that do."""
        room = self._room
        found: list[Wait] = []
        for taker in self._takers if room is not None else ():
            assert room is not None
            level, later = self._taken(taker)
            found += later
            needed = self._needed(taker, level - room)
            if needed is None:
                return None
            found += needed
        return found

    def _taken(self, taker: Holding) -> tuple[int, list[Wait]]:
        """What may be taken when this pass has begun, and the waits that keep later ones of other streams behind."""
        own = self._job(taker.first[0])
        ended = self._starts[taker.first[0]] + own.steps
        behind = bisect_left(self._begins, ended)
        free, waits = self._streams - {own.resource}, list[Wait]()
        for other in islice(self._takers, behind, None) if free else ():
            for n in other.first:
                where = self._job(n).resource
                if where in free:
                    waits.append(Wait(own.task, self._job(n).task))
                    free.discard(where)
            if not free:
                break
        # Passes that begin on one stream begin one after the other.
        return self._taken_by[behind], waits

    def _needed(self, taker: Holding, excess: int) -> list[Wait] | None:
        """The waits by which so much is known to be given back before a pass; None if too little ends in time."""
        first = self._job(taker.first[0])
        # What one of several first jobs waits for, the others may not.
        alone = len(taker.first) == 1
        seen = self._seen.setdefault(first.resource, {}) if alone else {}
        gifts = self._gifts.setdefault(first.resource, _Gifts()) if alone else _Gifts()
        if alone:
            seen[first.resource] = max(seen.get(first.resource, 0), self._place[taker.first[0]])
        self._look_until(gifts, self._begin(taker), self._starts[taker.first[0]] + first.steps)
        waits: dict[Resource, Wait] = {}
        while True:
            known = [one for one in gifts.unknown if self._is_known(one, seen)]
            gifts.total += sum(one.gives for one in known)
            gifts.known += (one for one in known if one.until is not None)
            gifts.unknown = [one for one in gifts.unknown if one not in known]
            if excess <= gifts.total:
                return [wait._replace(after=self._job(n).task) for n in taker.first for wait in waits.values()]
            if not gifts.unknown:
                return None
            for n in gifts.unknown[0].last:
                job = self._job(n)
                if self._place[n] >= seen.get(job.resource, 0):
                    seen[job.resource] = self._place[n] + 1
                    waits[job.resource] = Wait(job.task, first.task)

    def _look_until(self, gifts: _Gifts, begin: int, ended: int) -> None:
        """What has ended when a pass begins is looked at; what is taken again before it has begun is not away."""
        reached = bisect_right(self._ends, begin)
        gifts.unknown += self._givers[gifts.later : reached]
        gifts.later = max(gifts.later, reached)
        gifts.unknown = [one for one in gifts.unknown if self._is_away(one, ended)]
        gifts.total -= sum(one.gives for one in gifts.known if not self._is_away(one, ended))
        gifts.known = [one for one in gifts.known if self._is_away(one, ended)]

    def _is_away(self, one: Holding, ended: int) -> bool:
        return one.until is None or self._starts[one.until] >= ended

    def _is_known(self, one: Holding, seen: Mapping[Resource, int]) -> bool:
        return all(self._place[n] < seen.get(self._job(n).resource, 0) for n in one.last)

    def _job(self, n: int) -> Job:
        return self._jobs.jobs[n]
