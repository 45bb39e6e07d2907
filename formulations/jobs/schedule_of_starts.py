"""Conversion of job starts to a schedule (orders of streams, waits for memory), and of a timeline to job starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from formulations.jobs.jobs import Job, JobMemory, Jobs
from formulations.jobs.quantities import JobId, PoolId, TimeSteps
from pipesched.deadline import SHORT, asking
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import BW, B, Pass, Slot, Task, W
from pipesched.problem.quantities import MemorySteps
from pipesched.schedule.schedule import Schedule, Wait
from pipesched.schedule.timeline import Timeline


def schedule_of_starts(jobs: Jobs, starts: Mapping[JobId, TimeSteps], name: str = "") -> Schedule | None:
    """Return the schedule called `name` with these job starts, in steps; None if it exceeds a memory.

    Jobs without a start do not run. Where each pass is one task on one stream, a forward and a backward that start
    together are a block; memory is not looked at if there is one. Waits for passes that have ended change no start, so
    memory within its capacity at every start can always be made safe.
    """
    running = {job.task: start for job, start in ((jobs.jobs[n], start) for n, start in starts.items())}
    orders: list[list[tuple[int, Pass]]] = [[] for _ in range(jobs.problem.devices)]
    first: dict[Pass, int] = {}
    for task, start in asking(running.items(), SHORT):
        first[task.of] = min(start, first.get(task.of, start))
    for p, start in first.items():
        orders[jobs.problem.device(p)].append((start, p))
    blocks = [tuple(_slots(order)) for order in orders] if _one_task_on_one_stream(jobs) else []
    if any(len(slot) > 1 for slots in blocks for slot in slots):
        return Schedule(tuple(blocks), name)  # on one stream, as jobs do not know where blocks end
    running_on = {where: [n for n in here if n in starts] for where, here in jobs.on.items()}
    streams = {where: sorted(here, key=starts.__getitem__) for where, here in running_on.items()}
    task_orders = {where: tuple(jobs.jobs[n].task for n in order) for where, order in streams.items() if order}
    waits: list[Wait] = []
    for pool in range(len(jobs.pools)):
        found = _Memory(jobs, starts, streams, pool).waits()
        if found is None:
            return None
        waits += found
    if _one_task_on_one_stream(jobs):
        return Schedule(tuple(blocks), name)  # the order of passes determines everything
    return Schedule(tuple(tuple((p,) for _, p in sorted(order)) for order in orders), name, task_orders, waits)


def _one_task_on_one_stream(jobs: Jobs) -> bool:
    network = jobs.problem.network
    single = all(len(tasks) == 1 for tasks in network.tasks.values())
    alone = single and not network.occupies_several
    return len(jobs.problem.streams) == 1 and alone and not network.has_activation_modes


def _slots(order: list[tuple[TimeSteps, Pass]]) -> Iterator[Slot]:
    """Yield the slots of a device from its (start, pass) pairs, in order of start: a pass alone or an overlapped block.

    A forward and a backward that start together are one block, the forward first.
    """
    by_start: dict[int, list[Pass]] = {}
    for start, p in sorted(order):
        by_start.setdefault(start, []).append(p)
    for passes in by_start.values():
        if len(passes) == 1:
            yield (passes[0],)
        else:
            forward, backward = sorted(passes, key=lambda p: p.kind is BW)
            yield forward, backward


def starts_of(jobs: Jobs, timeline: Timeline) -> dict[JobId, TimeSteps] | None:
    """Return the start of each job in steps, from a timeline; its ticks, if finer than the problem's, are rounded down.

    A full backward without a job of its own becomes B and then W; None if there is no such W or it has several tasks.
    """
    parts, found = int(jobs.problem.tick / timeline.problem.tick), dict[int, int]()
    for task, start in asking(timeline.starts.items(), SHORT):
        steps = start // parts * jobs.scale
        if task in jobs.number:
            found[jobs.number[task]] = steps
            continue
        split = [Task(task.of._replace(kind=kind)) for kind in (B, W)]
        if task.part or not all(one in jobs.number for one in split):
            return None
        backward, weight = (jobs.number[one] for one in split)
        found |= {backward: steps, weight: steps + jobs.jobs[backward].steps}
    return found


class _Memory:
    """Resource flow of one memory pool under given starts: from which passes each taker gets its memory.

    `starts` are in steps, `streams` has the jobs of each stream in order of start. Memory is assigned in order of time:
    first from passes that the taker waits for anyway, by the order of its stream or an earlier wait, then from the
    passes that ended first, each of which adds a wait.
    """

    def __init__(
        self, jobs: Jobs, starts: Mapping[JobId, TimeSteps], streams: Mapping[Resource, list[JobId]], pool: PoolId
    ) -> None:
        self._jobs, self._starts, self._left = jobs, starts, jobs.room[pool]
        here = [one for one in jobs.holdings if one.pool == pool and one.where in starts]
        self._takers = sorted((one for one in here if one.takes), key=self._begin)
        self._givers = sorted((one for one in here if one.gives), key=self._end)
        # A job on several streams has its place on the first; that is enough to tell that it has ended.
        self._place = {
            n: place
            for where, order in streams.items()
            for place, n in enumerate(order)
            if self._job(n).resources[0] == where
        }
        # For each stream on which passes begin: the place on every stream up to which jobs are known to have ended.
        self._seen: dict[Resource, dict[Resource, int]] = {}

    def _begin(self, one: JobMemory) -> TimeSteps:
        return min(self._starts[n] for n in one.first)

    def _end(self, one: JobMemory) -> TimeSteps:
        return max(self._starts[n] + self._jobs.jobs[n].steps for n in one.last)

    def waits(self) -> list[Wait] | None:
        """Return the waits that keep the pool within its capacity.

        Empty if unlimited, None if the starts exceed the capacity.
        """
        if self._left is None:
            return []
        found, given, ended = list[Wait](), list[tuple[JobMemory, int]](), 0
        for taker in asking(self._takers):
            while ended < len(self._givers) and self._end(self._givers[ended]) <= self._begin(taker):
                given.append((self._givers[ended], self._givers[ended].gives))
                ended += 1
            seen = self._known_at(taker)
            lacking, given = self._take(given, taker.takes, seen)
            from_stock = min(lacking, self._left)
            self._left, lacking = self._left - from_stock, lacking - from_stock
            waited = dict[Resource, Wait]()
            while lacking and given:
                for n in given[0][0].last:
                    job = self._job(n)
                    if self._place[n] >= seen.get(job.resources[0], 0):
                        seen[job.resources[0]] = self._place[n] + 1
                        waited[job.resources[0]] = Wait(job.task, self._job(taker.first[0]).task)
                lacking, given = self._take(given, lacking, seen)
            if lacking:
                return None
            found += [wait._replace(after=self._job(n).task) for n in taker.first for wait in waited.values()]
        return found

    def _known_at(self, taker: JobMemory) -> dict[Resource, int]:
        """Return, by stream, before which position in its order all jobs are known to have ended when the taker starts.

        Empty for a pass that begins with several jobs. The result is shared by the passes that begin on one stream, and
        grows.
        """
        if len(taker.first) > 1:
            return {}
        resource = self._job(taker.first[0]).resources[0]
        seen = self._seen.setdefault(resource, {})
        seen[resource] = max(seen.get(resource, 0), self._place[taker.first[0]])
        return seen

    def _take(
        self, given: list[tuple[JobMemory, MemorySteps]], amount: MemorySteps, seen: Mapping[Resource, int]
    ) -> tuple[MemorySteps, list[tuple[JobMemory, MemorySteps]]]:
        """Take `amount` of memory from givers that are known to have ended.

        `given` pairs each giver with what it has left; `seen` has, by stream, before which position in its order all
        jobs are known to have ended. Returns the amount that is missing, and the givers that still have memory.
        """
        left = list[tuple[JobMemory, int]]()
        for one, there in given:
            taken = min(amount, there) if amount and self._is_known(one, seen) else 0
            amount -= taken
            if there > taken:
                left.append((one, there - taken))
        return amount, left

    def _is_known(self, one: JobMemory, seen: Mapping[Resource, int]) -> bool:
        return all(self._place[n] < seen.get(self._job(n).resources[0], 0) for n in one.last)

    def _job(self, n: JobId) -> Job:
        return self._jobs.jobs[n]
