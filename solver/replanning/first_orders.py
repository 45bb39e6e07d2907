"""First orders of the remaining tasks of an iteration in progress: list scheduling within memory, by several rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from formulations.jobs.jobs import Jobs
from formulations.jobs.quantities import ChoiceId, JobId, PoolId, TimeSteps
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.quantities import MemorySteps
from solver.replanning.gathers_on_demand import GathersOnDemand, Rank
from solver.tasks.job_graph import JobGraph, graph_of


def first_orders(jobs: Jobs) -> Iterator[dict[JobId, TimeSteps]]:
    """Yield the starts in steps, by job, of a list schedule for each rule that does not deadlock on memory.

    Jobs that do not run are absent. The rules combine fused and split backwards, each activation mode, and a priority:
    the longest tail, backwards first, or one micro-batch after the other, where parameters are gathered also in groups
    of several. One micro-batch after the other deadlocks only if every order does.
    """
    most = max((choice.options for choice in jobs.choices), default=1)
    # Of gathered parameters: the more micro-batches run in turn, the less often they are gathered.
    numbers = 1 + max((job.task.of.microbatch for job in jobs.jobs), default=0)
    groups = [2**power for power in range(1, numbers.bit_length())] if jobs.gaps else []
    for fused, mode in product((True, False) if jobs.choices else (True,), range(most)):
        graph = graph_of(jobs, _running(jobs, fused, mode))
        tails = graph.tails()

        def longest(n: JobId, start: TimeSteps, tails: Mapping[JobId, TimeSteps] = tails) -> Rank:
            return (start, -tails[n])

        def backwards(n: JobId, start: TimeSteps) -> Rank:
            kind, stage, j = jobs.jobs[n].task.of
            return (start, kind is W, kind is F, j, stage)

        def in_turn(n: JobId, start: TimeSteps) -> Rank:
            return (jobs.jobs[n].task.of.microbatch, start)

        yield from _placed(graph, longest)
        yield from _placed(graph, backwards)
        yield from _placed(graph, in_turn)
        for size in groups:

            def in_groups(n: JobId, start: TimeSteps, size: int = size) -> Rank:
                return (jobs.jobs[n].task.of.microbatch // size, start)

            yield from _placed(graph, in_groups)


def _running(jobs: Jobs, fused: bool, mode: int) -> list[JobId]:
    """Return the jobs that run if every activation takes mode `mode`, or its last one if it has fewer.

    Backwards that may be either are full if `fused`, else split; optional gathers run.
    """

    def option(choice: ChoiceId, kind: PassKind) -> int:
        if jobs.choices[choice].gathers:
            return 1  # where they are wanted
        return min(int(fused) if kind in (B, W, BW) else mode, jobs.choices[choice].options - 1)

    chosen = ((n, job, job.choice) for n, job in enumerate(jobs.jobs))
    return [n for n, job, choice in chosen if choice is None or job.option == option(choice, job.task.of.kind)]


def _placed(graph: JobGraph, rank: Callable[[JobId, TimeSteps], Rank]) -> Iterator[dict[JobId, TimeSteps]]:
    """Yield the starts in steps of a list schedule: repeatedly the job of lowest rank is placed, within memory.

    The rank is `rank(job, start)`, where the start is the earliest one of a job whose predecessors are placed. Jobs
    that memory does not admit, or whose parameters are not gathered, are passed over. Yields nothing if no job can be
    placed before all are.
    """
    jobs = graph.jobs
    memory = _Memory(graph)
    free = dict.fromkeys(jobs.on, 0)
    missing = {n: len(graph.before[n]) for n in graph.running}
    begin = {n: jobs.released(n) for n in graph.running}
    gathers = GathersOnDemand(graph)
    for n, needs in graph.before.items():
        missing[n] -= sum(gathers.waits(one, n) for one, _ in needs)
    ready = {n for n, count in missing.items() if not count}
    starts: dict[int, int] = {}
    while ready:
        able: list[tuple[int, int]] = []
        for allowed in (gathers.wanted(ready), gathers.to_drop(ready), gathers.unwanted(ready)):
            soonest = (
                (n, max(since, begin[n], *(free[where] for where in jobs.jobs[n].resources))) for n, since in allowed
            )
            able = [(start, n) for n, since in soonest if (start := memory.room_at(n, since)) is not None]
            if able:
                break
        else:
            break
        start, n = min(able, key=lambda one: gathers.order(one[0], one[1], ready, rank))
        starts[n], end = start, start + jobs.jobs[n].steps
        for where in jobs.jobs[n].resources:
            free[where] = end
        memory.place(n, start, end)
        gathers.place(n, end)
        ready.remove(n)
        for after, lag in graph.after[n]:
            if gathers.waits(n, after):
                continue
            begin[after] = max(begin[after], end + lag)
            missing[after] -= 1
            if not missing[after]:
                ready.add(after)
    if all(n in starts or gathers.optional(n) for n in graph.running):
        yield starts


class _Memory:
    """Memory left in each limited pool while jobs are placed: taken at starts in turn, freed at ends of passes."""

    def __init__(self, graph: JobGraph) -> None:
        jobs = graph.jobs
        here = [one for one in jobs.holdings if one.where in graph.before and jobs.room[one.pool] is not None]
        self._left = {pool: room for pool, room in enumerate(jobs.room) if room is not None}
        self._taken = dict.fromkeys(self._left, 0)  # time of the last allocation
        self._given: dict[int, list[tuple[int, int]]] = {pool: [] for pool in self._left}  # (when, how much)
        self._takes: dict[int, list[_PassMemory]] = {}
        self._gives: dict[int, list[_PassMemory]] = {}
        for one in here:
            pass_memory = _PassMemory(one.pool, one.takes, one.gives, len(one.last))
            for on, found in ((one.first, self._takes), (one.last, self._gives)):
                for n in on:
                    found.setdefault(n, []).append(pass_memory)

    def room_at(self, n: JobId, start: TimeSteps) -> TimeSteps | None:
        """Return the earliest step, `start` or later, at which there is enough memory for job `n`.

        None if there is not enough before more jobs are placed.
        """
        for one in self._takes.get(n, ()):
            if one.takes:
                start, left = max(start, self._taken[one.pool]), self._left[one.pool]
                for when, amount in sorted(self._given[one.pool]):
                    if when > start and left >= one.takes:
                        break
                    if left < one.takes:
                        start = max(start, when)
                    left += amount
                if left < one.takes:
                    return None
        return start

    def place(self, n: JobId, start: TimeSteps, end: TimeSteps) -> None:
        for one in self._takes.get(n, ()):
            if one.takes:
                given = self._given[one.pool]
                self._left[one.pool] += sum(amount for when, amount in given if when <= start) - one.takes
                self._given[one.pool] = [later for later in given if later[0] > start]
                self._taken[one.pool], one.takes = start, 0
        for one in self._gives.get(n, ()):
            one.left, one.end = one.left - 1, max(one.end, end)
            if not one.left and one.gives:
                self._given[one.pool].append((one.end, one.gives))


@dataclass
class _PassMemory:
    """Memory that a pass still takes and releases in one pool.

    `left` is the number of its last jobs that are not placed yet, and `end` the latest end of the placed ones. `gives`
    is the memory that it releases at that end.
    """

    pool: PoolId
    takes: MemorySteps
    gives: MemorySteps
    left: int
    end: TimeSteps = 0
