"""A schedule from the starts of jobs: the order on every stream, and the waits between streams that memory rests on."""

from __future__ import annotations

from collections.abc import Mapping

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


class _Memory:
    """The memory of one device or host under these starts."""

    def __init__(self, jobs: Jobs, starts: Mapping[int, int], streams: Mapping[Resource, list[int]], pool: int) -> None:
        self._jobs, self._starts, self._room = jobs, starts, jobs.room[pool]
        here = [one for one in jobs.holdings if one.pool == pool and one.where in starts]
        self._takers = sorted((one for one in here if one.takes), key=self._begin)
        self._givers = sorted((one for one in here if one.gives), key=self._end)
        self._place = {n: place for order in streams.values() for place, n in enumerate(order)}
        # Of each stream on which passes begin, up to which place of every stream all is known to have ended.
        self._seen: dict[Resource, dict[Resource, int]] = {}
        self._freed: dict[Resource, list[Holding]] = {}

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
        level, held_back, waits = 0, set[Resource](), list[Wait]()
        for other in self._takers:
            if other is not taker and self._begin(other) >= ended:
                for n in other.first:
                    where = self._job(n).resource
                    if where != own.resource and where not in held_back:
                        waits.append(Wait(own.task, self._job(n).task))
                        held_back.add(where)
                continue
            # Passes that begin on one stream begin one after the other.
            level += 0 if other.again else other.takes
        return level, waits

    def _needed(self, taker: Holding, excess: int) -> list[Wait] | None:
        """The waits by which so much is known to be given back before a pass; None if too little ends in time."""
        first = self._job(taker.first[0])
        # What one of several first jobs waits for, the others may not.
        seen = self._seen.setdefault(first.resource, {}) if len(taker.first) == 1 else {}
        if len(taker.first) == 1:
            seen[first.resource] = max(seen.get(first.resource, 0), self._place[taker.first[0]])
        waits: dict[Resource, Wait] = {}
        begin = self._begin(taker)
        ended = self._starts[taker.first[0]] + first.steps
        # What is taken again before this pass has begun is not away.
        left = [one for one in self._givers if one is not taker and self._away_until(one, ended)]
        while True:
            known = [one for one in left if self._is_known(one, seen)]
            excess -= sum(one.gives for one in known)
            left = [one for one in left if one not in known]
            if excess <= 0:
                return [wait._replace(after=self._job(n).task) for n in taker.first for wait in waits.values()]
            if not left or self._end(left[0]) > begin:
                return None
            for n in left[0].last:
                job = self._job(n)
                if self._place[n] >= seen.get(job.resource, 0):
                    seen[job.resource] = self._place[n] + 1
                    waits[job.resource] = Wait(job.task, first.task)

    def _away_until(self, one: Holding, ended: int) -> bool:
        return one.until is None or self._starts[one.until] >= ended

    def _is_known(self, one: Holding, seen: Mapping[Resource, int]) -> bool:
        return all(self._place[n] < seen.get(self._job(n).resource, 0) for n in one.last)

    def _job(self, n: int) -> Job:
        return self._jobs.jobs[n]
