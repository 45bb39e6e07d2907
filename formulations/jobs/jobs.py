"""Jobs of a problem: every task of its network copied for each micro-batch, numbered, with their precedences.

Multi-mode scheduling: where a backward may run full or split, or an activation may be kept, offloaded or recomputed,
the jobs of all modes are listed and some of them are chosen.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from formulations.jobs.quantities import ChoiceId, JobId, PoolId, TimeSteps
from pipesched.problem.chains.chain_groups import chain_groups
from pipesched.problem.network.task_network import Resource, TaskType
from pipesched.problem.passes import F, Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, MicrobatchId, StageId


class Job(NamedTuple):
    """A task of one micro-batch with its duration in steps; `Jobs` numbers them.

    It runs if the choice with index `choice` takes its `option`, or always if `choice` is None. `steps` is `scale`
    steps per tick, and one step for a task that takes no time. It occupies all its `resources` from start to end; in an
    order of passes it has its position on the first of them.
    """

    task: Task
    resources: tuple[Resource, ...]
    steps: TimeSteps
    choice: ChoiceId | None = None
    option: int = 0


class Decision(NamedTuple):
    """A mode that the model chooses, among `options` modes, for one micro-batch on one stage.

    Options are numbered from 0: for a backward split and full; for an activation as in `TaskNetwork.options`. If it
    `gathers`, it decides if a stage's parameters are gathered once more (0: no, 1: yes), and `microbatch` is the number
    of that gather.
    """

    stage: StageId
    microbatch: MicrobatchId
    options: int
    gathers: bool = False


class Precedence(NamedTuple):
    """Finish-to-start precedence: job `after` starts at least `lag` steps after the end of a job of `alternatives`.

    Exactly one of the alternatives runs; of an `optional` precedence one or none. If none does, it demands nothing.
    """

    after: JobId
    alternatives: tuple[JobId, ...]
    lag: TimeSteps
    optional: bool = False


class JobMemory(NamedTuple):
    """Memory that a pass takes when its first job starts (`takes`) and frees when its last job has ended (`gives`).

    Both are in the problem's steps of memory. `pool` indexes the memories: the reservoirs of the network, then, if
    gathered stages are limited, each device's number of gathered stages. `first` are the jobs that wait for no other
    job of the pass; the pass has ended when all jobs in `last` have. The entry counts only if job `where` runs.

    The copy of an activation out frees the memory that the copy back takes again. If an activation is recomputed, its
    forward frees at its end the memory that the recomputation takes again.
    """

    pool: PoolId
    takes: MemorySteps
    gives: MemorySteps
    first: tuple[JobId, ...]
    last: tuple[JobId, ...]
    where: JobId


class UngatheredInterval(NamedTuple):
    """Time from job `release` to the end of job `gather`, in which a stage's parameters are not gathered.

    `users` are the passes that use the parameters, each as (first jobs, last jobs); none of them runs in the gap. If
    `release` runs and `gather` does not, the parameters are never gathered again.
    """

    release: JobId
    gather: JobId
    users: tuple[tuple[tuple[JobId, ...], tuple[JobId, ...]], ...]


@dataclass(frozen=True)
class Jobs:
    """All jobs of a problem, identified by their index in `jobs`, with precedences, memory and the modes to choose.

    `room` is the capacity of each memory pool (None: unlimited), devices first. At most `most_further_gathers` of the
    choices that gather take place (None: no limit). Where micro-batches are `renumbered`, identical ones may be
    numbered in the order in which they begin.

    In an iteration in progress `release` has the earliest step of each job (empty: 0 for all) and, if the objective
    needs it, `opened` the step at which each device began, None for one that has not.

    `zeros` jobs, or blocks by their forward, take no time; each of them has one step, so that every job has its own
    place in an order. All these steps together are less than the least part of a tick by which values differ (1 /
    `parts`, see `attainable_spans`). `holdings` are the amounts of memory that passes take and free, `gaps` the
    intervals in which a stage's parameters are not gathered.
    """

    problem: Problem
    jobs: tuple[Job, ...]
    precedences: tuple[Precedence, ...]
    holdings: tuple[JobMemory, ...]
    choices: tuple[Decision, ...]
    room: tuple[MemorySteps | None, ...]
    parts: int
    zeros: int
    gaps: tuple[UngatheredInterval, ...] = ()
    most_further_gathers: int | None = None
    renumbered: bool = True
    # For an iteration in progress: the earliest step of each job (empty: 0 for all). Micro-batches of a chain then
    # differ.
    release: tuple[TimeSteps, ...] = ()
    # For an iteration in progress and an objective that needs it: the step at which each device began; None for one
    # that has not.
    opened: tuple[TimeSteps | None, ...] = ()

    def released(self, n: JobId) -> TimeSteps:
        """Return the step before which a job cannot start (its release time)."""
        return self.release[n] if self.release else 0

    def have_modes(self) -> bool:
        """Return True if the mode of some backward or activation, or a further gather, is to be chosen."""
        return bool(self.choices)

    def have_gathers(self) -> bool:
        """Return True if some schedule gathers parameters more than once, or their gathers are limited in number."""
        again = any(choice.gathers for choice in self.choices)
        return again or bool(self.gaps) or self.most_further_gathers is not None

    @property
    def scale(self) -> int:
        """Steps per tick."""
        return self.parts * self.zeros + 1

    @cached_property
    def number(self) -> dict[Task, JobId]:
        """The job number of each task."""
        return {job.task: n for n, job in enumerate(self.jobs)}

    @cached_property
    def on(self) -> dict[Resource, list[JobId]]:
        """The job numbers of each resource (stream of a device), ascending."""
        found: dict[Resource, list[int]] = {}
        for n, job in enumerate(self.jobs):
            for where in job.resources:
                found.setdefault(where, []).append(n)
        return found

    @cached_property
    def pools(self) -> tuple[tuple[DeviceId, ...], ...]:
        """For each memory pool, by index, the devices whose passes take its memory."""
        return (
            *(one.devices for one in self.problem.network.reservoirs),
            *(() if self.problem.parameters.window is None else ((device,) for device in range(self.problem.devices))),
        )

    def device(self, n: JobId) -> DeviceId:
        """Return the device of a job's stage, whatever stream it runs on."""
        return self.problem.device(self.jobs[n].task.of)

    def devices(self, n: JobId) -> tuple[DeviceId, ...]:
        """Return the devices on whose streams a job runs, that of its stage first."""
        return self._devices[n]

    @cached_property
    def _devices(self) -> tuple[tuple[DeviceId, ...], ...]:
        return tuple(self.problem.devices_of(job.task) for job in self.jobs)

    def devices_on(self, where: Resource) -> Collection[DeviceId]:
        """Return the devices whose tasks run on the stream `where`: several where devices share a stream."""
        sharing = (one.devices for one in self.problem.resources.shared_streams if one.stream == where.stream)
        return next((devices for devices in sharing if where.device in devices), (where.device,))

    @cached_property
    def taken_by(self) -> dict[JobId, PoolId]:
        """For each job with which a pass that takes limited memory begins, the index of that memory pool.

        A job that takes memory of several pools has the last of them in `holdings`.
        """
        takers = (one for one in self.holdings if one.takes and self.room[one.pool] is not None)
        return {n: one.pool for one in takers for n in one.first}

    @cached_property
    def interchangeable(self) -> tuple[tuple[JobId, JobId], ...]:
        """Pairs (first job of a micro-batch, first job of the next): the second must not start before the first.

        This breaks the symmetry of identical micro-batches where `consecutive` is empty: they may be numbered in the
        order in which they begin. Chains joined by arcs are numbered together, in the order in which micro-batches
        begin on the first of these chains. Empty where `consecutive` gives the order, or micro-batches are not
        interchangeable.
        """
        if not self.renumbered or self.release or all(choice.gathers for choice in self.choices):
            return ()
        chains = self.problem.placement.chains
        first = {chains[tied[0]][0] for tied in chain_groups(self.problem)}
        found: dict[int, list[tuple[int, int]]] = {stage: [] for stage in first}
        for n, job in enumerate(self.jobs):
            if job.task.of.kind is F and job.task.of.stage in first and job.task.part == 0:
                found[job.task.of.stage].append((job.task.of.microbatch, n))
        return tuple((a[1], b[1]) for line in found.values() for a, b in pairwise(sorted(line)))

    def chosen(self, running: Collection[JobId]) -> dict[ChoiceId, int]:
        """Return by index of a choice the option that it takes when the jobs `running` run.

        0 if none of its jobs runs. It has an entry for every choice.
        """
        found = dict.fromkeys(range(len(self.choices)), 0)
        for n in running:
            job = self.jobs[n]
            if job.choice is not None:
                found[job.choice] = job.option
        return found

    @cached_property
    def consecutive(self) -> tuple[tuple[JobId, JobId], ...]:
        """Pairs (job, the same job of the next micro-batch) in whose order some optimal schedule runs them.

        Micro-batches of a chain are identical, so the starts of each job type may be sorted: every precedence still
        holds, and memory is taken no sooner and freed no later. Empty where this fails: where micro-batches may differ
        in their modes, some have begun, or are not `renumbered`. Across chains each micro-batch needs its share
        in order, which sorting keeps; arcs of single micro-batches occur only with `queues`, whose micro-batches keep
        their order anyway.
        """
        if not self.renumbered or self.release or not all(choice.gathers for choice in self.choices):
            return ()
        by_type: dict[TaskType, list[tuple[MicrobatchId, JobId]]] = {}
        for n, job in enumerate(self.jobs):
            if job.choice is None:
                kind, stage, j = job.task.of
                by_type.setdefault(TaskType(kind, stage, job.task.part), []).append((j, n))
        return tuple((a[1], b[1]) for line in by_type.values() for a, b in pairwise(sorted(line)))
