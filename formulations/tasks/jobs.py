"""The jobs of a problem: every task of its network copied for each micro-batch, numbered, with what ties them.

Multi-mode scheduling: where a backward may run fused or split, or an activation may be kept, offloaded or recomputed,
the jobs of all these are listed and some of them are chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from pipesched.problem.attainable_spans import largest_denominator
from pipesched.problem.passes import BW, OFFLOAD, RECOMPUTATIONS, RELOAD, B, F, Pass, Task, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import TaskSpec
from pipesched.problem.task_network import HostMemory, Mode, PassType, Resource, TaskNetwork, TaskType


class Job(NamedTuple):
    """A task of one micro-batch. It runs where its `choice` is its `option`; with no choice it always does.

    `steps` is its length: `scale` steps a tick, and one step where it takes no time.
    """

    task: Task
    resource: Resource
    steps: int
    choice: int | None = None
    option: int = 0


class Choice(NamedTuple):
    """What is chosen for a micro-batch on a stage: one of so many options.

    Of a backward they are split and fused; of an activation those of `TaskNetwork.options`.
    """

    stage: int
    microbatch: int
    options: int


class Tie(NamedTuple):
    """A job starts no sooner than `lag` steps after the end of that one of the alternatives that runs.

    One of them does, but for an `optional` tie.
    """

    after: int
    alternatives: tuple[int, ...]
    lag: int
    optional: bool = False


class Holding(NamedTuple):
    """What a pass takes of a memory as its first job starts, and gives back when its last one has ended.

    `pool` counts the devices, and behind them the hosts that have a limit. `first` are the jobs that wait for none of
    the same pass, `last` those after all of which it has ended. It does so where job `where` runs.

    What an activation's copy out or its forward gives back, the copy back or the recomputation takes again: `until` is
    the job that does, and the gift counts only until then. What is taken `again` is not counted once more.
    """

    pool: int
    takes: int
    gives: int
    first: tuple[int, ...]
    last: tuple[int, ...]
    where: int
    until: int | None = None
    again: bool = False


@dataclass(frozen=True)
class Jobs:
    """`choices` are what is decided. `room` is what each device has for activations, and behind that each host.

    `zeros` jobs take no time. Each of them has one step, so that every job has its own place in an order. All these
    steps together are less than the least part of a tick by which values differ (`parts` of `attainable_spans`).
    """

    problem: Problem
    jobs: tuple[Job, ...]
    ties: tuple[Tie, ...]
    holdings: tuple[Holding, ...]
    choices: tuple[Choice, ...]
    room: tuple[int | None, ...]
    parts: int
    zeros: int

    @property
    def scale(self) -> int:
        """Steps in a tick."""
        return self.parts * self.zeros + 1

    @cached_property
    def number(self) -> dict[Task, int]:
        """The job of each task."""
        return {job.task: n for n, job in enumerate(self.jobs)}

    @cached_property
    def on(self) -> dict[Resource, list[int]]:
        """The jobs of each resource."""
        found: dict[Resource, list[int]] = {}
        for n, job in enumerate(self.jobs):
            found.setdefault(job.resource, []).append(n)
        return found

    @cached_property
    def pools(self) -> tuple[tuple[int, ...], ...]:
        """The devices whose passes take of each memory."""
        return (*((device,) for device in range(self.problem.devices)), *(one.devices for one in _hosts(self.problem)))

    def device(self, n: int) -> int:
        """The device of a job's stage, whatever stream it runs on."""
        return self.problem.device(self.jobs[n].task.of)

    def devices_on(self, where: Resource) -> Collection[int]:
        """The devices whose tasks a stream runs."""
        sharing = (one.devices for one in self.problem.shared_streams if one.stream == where.stream)
        return next((devices for devices in sharing if where.device in devices), (where.device,))

    @cached_property
    def taken_by(self) -> dict[int, int]:
        """The memory that each job takes of, where there is a limit; no job takes of two."""
        takers = (one for one in self.holdings if one.takes and self.room[one.pool] is not None)
        return {n: one.pool for one in takers for n in one.first}

    @cached_property
    def alike(self) -> tuple[tuple[int, int], ...]:
        """Where jobs are not in turn: the first job of each micro-batch with that of the next, which may begin later.

        Micro-batches of a chain are alike, so they may be numbered as they begin.
        """
        if not self.choices:
            return ()
        first = {chain[0] for chain in self.problem.placement.chains}
        found: dict[int, list[tuple[int, int]]] = {stage: [] for stage in first}
        for n, job in enumerate(self.jobs):
            if job.task.of.kind is F and job.task.of.stage in first and job.task.part == 0:
                found[job.task.of.stage].append((job.task.of.microbatch, n))
        return tuple((a[1], b[1]) for line in found.values() for a, b in pairwise(sorted(line)))

    def chosen(self, running: Collection[int]) -> dict[int, int]:
        """The option of each choice, where these jobs run: the first where none of its jobs does."""
        found = dict.fromkeys(range(len(self.choices)), 0)
        for n in running:
            job = self.jobs[n]
            if job.choice is not None:
                found[job.choice] = job.option
        return found

    @cached_property
    def in_turn(self) -> tuple[tuple[int, int], ...]:
        """Jobs of one type, each with that of the next micro-batch, which in some best schedule comes after it.

        Micro-batches of a chain are alike, so the starts of each type may be sorted: every precedence is kept, and
        memory is taken no sooner and given back no later. Not so where micro-batches may differ in what is chosen.
        """
        if self.choices:
            return ()
        by_type: dict[TaskType, list[tuple[int, int]]] = {}
        for n, job in enumerate(self.jobs):
            kind, stage, j = job.task.of
            by_type.setdefault(TaskType(kind, stage, job.task.part), []).append((j, n))
        lines = (sorted(line) for line in by_type.values())
        return tuple((a[1], b[1]) for line in lines for a, b in pairwise(line))


def jobs_of(problem: Problem, passes: Collection[Pass] | None = None) -> Jobs:
    """The jobs of all passes, or of these alone: what others would have to end before them is then left out."""
    if problem.microbatch_scale:
        raise ValueError("unequal micro-batches are solved as chains (`microbatch_chains`)")
    network = problem.network
    held = [
        Pass(kind, stage, j)
        for kind, stage in network.tasks
        for j in problem.microbatches_of[stage]
        if (passes is None or Pass(kind, stage, j) in passes) and not (kind is BW and never_better(problem, stage))
    ]
    modes: dict[tuple[int, int], set[bool]] = {}
    for p in held:
        if p.kind in (B, W, BW):
            modes.setdefault((p.stage, p.microbatch), set()).add(p.kind is BW)
    choices = [Choice(*where, len(Mode)) for where, found in sorted(modes.items()) if len(found) == len(Mode)]
    backward = {one[:2]: n for n, one in enumerate(choices)}
    choices += [
        Choice(stage, j, len(options))
        for stage, options in network.options.items()
        for j in problem.microbatches_of[stage]
        if len(options) > 1 and any(Pass(kind, stage, j) in held for kind in problem.stages[stage].saving_kinds)
    ]
    activation = {one[:2]: n for n, one in enumerate(choices) if n >= len(backward)}

    def decided(p: Pass) -> tuple[int | None, int]:
        """The choice that decides whether a pass runs, and the option under which it does."""
        if p.kind in (F, B, W, BW):
            return None if p.kind is F else backward.get(p[1:]), int(p.kind is BW)
        number = next(n for n, option in enumerate(network.options[p.stage]) if p.kind in option)
        return activation.get(p[1:]), number

    types = network.tasks
    zeros = sum(task.ticks == 0 for p in held for task in types[p.kind, p.stage])
    parts = largest_denominator(problem)
    scale = parts * zeros + 1
    jobs = tuple(
        Job(Task(p, part), task.resource, max(1, task.ticks * scale), *decided(p))
        for p in held
        for part, task in enumerate(types[p.kind, p.stage])
    )
    number = {job.task: n for n, job in enumerate(jobs)}
    ties = (*_ties(problem, held, number, scale), *_ties_of_queues(problem, held, number))
    holdings = tuple(_holdings(problem, held, number))
    room = (*network.room, *(host.room for host in _hosts(problem)))
    return Jobs(problem, jobs, ties, holdings, tuple(choices), room, parts, zeros)


def in_microbatch_turn(jobs: Jobs) -> Jobs:
    """The jobs restricted to schedules that run what always runs in the order of micro-batches, type by type."""
    by_type: dict[TaskType, list[tuple[int, int]]] = {}
    for n, job in enumerate(jobs.jobs):
        if job.choice is None:
            kind, stage, j = job.task.of
            by_type.setdefault(TaskType(kind, stage, job.task.part), []).append((j, n))
    lines = (sorted(line) for line in by_type.values())
    turns = (Tie(b[1], (a[1],), 0) for line in lines for a, b in pairwise(line))
    return replace(jobs, ties=(*jobs.ties, *turns))


def never_better(problem: Problem, stage: int) -> bool:
    """Whether a fused backward of a stage is no more than the tasks of B and W in turn, or takes longer than both."""
    own = problem.stages[stage]
    takes_more = own.freed < 0 and problem.room[problem.placement.stage_device[stage]] is not None
    if own.weight is None or takes_more or problem.overlaps:
        return False
    fused, backward, weight = (own.tasks_of(kind) for kind in (BW, B, W))
    if len(fused) == len(backward) == len(weight) == 1:
        streams = {task.stream for task in (*fused, *backward, *weight)}
        return len(streams) == 1 and fused[0].ticks >= backward[0].ticks + weight[0].ticks
    return _is_woven(fused, backward, weight)


def _is_woven(fused: Sequence[TaskSpec], backward: Sequence[TaskSpec], weight: Sequence[TaskSpec]) -> bool:
    """Whether a fused backward runs the tasks of B in their order, each of W behind the one that it waits for."""
    done, left = 0, list(weight)
    for task in fused:
        if done < len(backward) and task[:3] == backward[done][:3]:
            done += 1
            continue
        ready = (w for w in left if task[:3] == w[:3] and (len(backward) if w.after is None else w.after + 1) <= done)
        found = next(ready, None)
        if found is None:
            return False
        left.remove(found)
    return done == len(backward) and not left


def _ties(problem: Problem, held: list[Pass], number: dict[Task, int], scale: int) -> list[Tie]:
    """The arcs of the network between the passes that are here, for every micro-batch."""
    found = []
    for p in held:
        for arc in problem.network.arcs_into[p.kind, p.stage]:
            named = (Task(Pass(a.kind, a.stage, p.microbatch), a.part) for a in arc.alternatives)
            here = tuple(number[task] for task in named if task in number)
            if here:
                found.append(Tie(number[Task(p, arc.after.part)], here, arc.lag * scale, arc.optional))
    return found


def _ties_of_queues(problem: Problem, held: list[Pass], number: dict[Task, int]) -> Iterator[Tie]:
    """Where the order of micro-batches is fixed, each forward begins after that of the one before, backwards too."""
    lines: dict[tuple[bool, int], dict[int, list[int]]] = {}
    for p in held if problem.queues else ():
        if p.kind in (F, B, BW):
            line = lines.setdefault((p.kind is F, problem.queues[p.stage]), {})
            line.setdefault(p.microbatch, []).append(number[Task(p)])
    for line in lines.values():
        for one, other in pairwise(sorted(line)):
            yield from (Tie(after, tuple(line[one]), 0) for after in line[other])


def _hosts(problem: Problem) -> list[HostMemory]:
    """The hosts whose memory is limited."""
    return [host for host in problem.network.hosts if host.room is not None]


def _holdings(problem: Problem, held: list[Pass], number: dict[Task, int]) -> Iterator[Holding]:
    """The passes that change the level of a device's or a limited host's memory."""
    network = problem.network
    first = {pass_type: _first_parts(network, pass_type) for pass_type in network.tasks}
    hosts = {device: problem.devices + n for n, host in enumerate(_hosts(problem)) for device in host.devices}

    def ends(p: Pass) -> tuple[tuple[int, ...], tuple[int, ...]]:
        begin, end = first[p.kind, p.stage], network.ends[p.kind, p.stage]
        return tuple(number[Task(p, part)] for part in begin), tuple(number[Task(p, part)] for part in end)

    for p in held:
        device = problem.device(p)
        pools = [(device, network.change[p.kind, p.stage])]
        if device in hosts and p[:2] in network.host_change:
            pools.append((hosts[device], network.host_change[p.kind, p.stage]))
        for pool, change in pools:
            # What is taken at the end counts from the start on, what is given back at the start only from the end on.
            takes = max(0, change.at_start) + max(0, change.at_end)
            gives = max(0, -change.at_start) + max(0, -change.at_end)
            if takes or gives:
                again = pool == device and (p.kind is RELOAD or p.kind in RECOMPUTATIONS)
                until = number.get(Task(p._replace(kind=RELOAD))) if pool == device and p.kind is OFFLOAD else None
                yield Holding(pool, takes, gives, *ends(p), number[Task(p)], until, again)
        forward = p._replace(kind=F)
        if p[:2] in network.given_up and Task(forward) in number:
            own = number[Task(p)]
            yield Holding(device, 0, network.given_up[p.kind, p.stage], *ends(forward), own, own)


def _first_parts(network: TaskNetwork, pass_type: PassType) -> tuple[int, ...]:
    """The tasks of a pass that wait for none of the same pass."""
    arcs = network.arcs_into[pass_type]
    later = {arc.after.part for arc in arcs if any(other.pass_type == pass_type for other in arc.alternatives)}
    return tuple(part for part in range(len(network.tasks[pass_type])) if part not in later)
