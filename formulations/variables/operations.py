"""Operations: the start variables of a model, one for each job, except that B and BW of one micro-batch may share one.

Where a backward is one task in either mode, B and BW share the operation of role B, which lasts as long as the one that
runs, and W is an operation of zero length right after it where the backward is fused. So the order of a device has one
literal for both modes. All other jobs of choices are operations of their own, which run in their mode only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from formulations.jobs.jobs import Jobs
from formulations.jobs.quantities import ChoiceId, JobId, PoolId, TimeSteps
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import BW, OF_PARAMETERS, B, PassKind, W
from pipesched.problem.quantities import DeviceId, MemorySteps, MicrobatchId, StageId, TaskPart


class Operation(NamedTuple):
    """Task `part` of a pass of one micro-batch on one stage.

    `role` is its kind, with B also for a BW that shares it.
    """

    role: PassKind
    stage: StageId
    microbatch: MicrobatchId
    part: TaskPart = 0


class Arc(NamedTuple):
    """Precedence: operation `after` starts at least `lag` steps after the end of `before`, if both run.

    `jobs` are the pairs (before, after) of jobs to which this applies; `whole`: True if these are all pairs of jobs
    that the two operations stand for.
    """

    before: Operation
    after: Operation
    lag: TimeSteps
    jobs: Sequence[tuple[JobId, JobId]]
    whole: bool


class OperationMemory(NamedTuple):
    """Memory that a pass takes and frees: `JobMemory` with operations in place of jobs.

    An empty W represents the release of a fused backward. `where` is the job with which it takes memory; unless its
    operation always runs, it frees nothing without that job. It `takes` with the first of the operations `first`, and
    `gives` when all of `last` have ended. `running` is what it both takes and gives itself, in use only while it runs.
    """

    pool: PoolId
    takes: MemorySteps
    gives: MemorySteps
    first: Sequence[Operation]
    last: Sequence[Operation]
    where: JobId
    running: MemorySteps


class Operations:
    """The operations of a model: `of[n]` stands for job n, and `jobs_of[x]` has the one or two jobs of operation x.

    `number[x]` is the place of x in `jobs_of`, `on` has the operations of each resource, `merged` the choices of
    backwards whose B and BW share an operation.
    """

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.merged = _one_task_backwards(jobs)
        self.of: list[Operation] = []
        self.jobs_of: dict[Operation, tuple[int, ...]] = {}
        for n, job in enumerate(jobs.jobs):
            kind, stage, j = job.task.of
            # A backward that is fused in every way is of role B as well.
            role = B if kind is BW and (job.choice is None or job.choice in self.merged) else kind
            x = Operation(role, stage, j, job.task.part)
            self.of.append(x)
            self.jobs_of[x] = (*self.jobs_of.get(x, ()), n)
        self.number = {x: n for n, x in enumerate(self.jobs_of)}
        self.on: dict[Resource, list[Operation]] = {}
        for x in self.jobs_of:
            for where in self.resources(x):
                self.on.setdefault(where, []).append(x)

    def resources(self, x: Operation) -> tuple[Resource, ...]:
        """Return the resources that an operation occupies from start to end."""
        return self.jobs.jobs[self.jobs_of[x][0]].resources

    def device(self, x: Operation) -> DeviceId:
        """Return the device of an operation's stage, whatever stream it runs on."""
        return self.jobs.device(self.jobs_of[x][0])

    def devices(self, x: Operation) -> tuple[DeviceId, ...]:
        """Return the devices of which an operation occupies a stream, that of its stage first."""
        return self.jobs.devices(self.jobs_of[x][0])

    @cached_property
    def mode(self) -> dict[Operation, tuple[ChoiceId, int]]:
        """For each operation that runs in one mode only, the choice and the option of that mode.

        All others run under every choice of modes, possibly with length 0.
        """
        jobs = ((x, self.jobs.jobs[own[0]]) for x, own in self.jobs_of.items())
        modes = ((x, job.choice, job.option) for x, job in jobs)
        return {x: (choice, n) for x, choice, n in modes if choice is not None and choice not in self.merged}

    def always(self, x: Operation) -> bool:
        """True if the operation runs under every choice of modes, possibly with length 0."""
        return x not in self.mode

    @cached_property
    def backward_of(self) -> dict[Operation, Operation]:
        """For each W of a backward that may be fused, that backward: in that mode the W has zero length."""
        weights = (x for x in self.jobs_of if x.role is W) if self.merged else ()
        return {x: x._replace(role=B) for x in weights if self.jobs.jobs[self.jobs_of[x][0]].choice in self.merged}

    def is_empty_if_fused(self, x: Operation) -> bool:
        """True for the W of a backward that may be fused: it has zero length in that mode."""
        return x in self.backward_of

    def exclude(self, x: Operation, y: Operation) -> bool:
        """True if the two operations never both run, because they belong to different options of one choice."""
        (choice, option), (other_choice, other_option) = (self.mode.get(one, (None, 0)) for one in (x, y))
        return choice == other_choice and option != other_option

    @cached_property
    def arcs(self) -> list[Arc]:
        """The precedences between operations, without repetition, each with the pairs of jobs to which it applies."""
        pairs: dict[tuple[Operation, Operation, int], dict[tuple[int, int], None]] = {}
        for after, alternatives, lag, _ in self.jobs.precedences:
            for before in alternatives:
                key = self.of[before], self.of[after], lag
                pairs.setdefault(key, {})[before, after] = None
        return [Arc(*key, tuple(found), self._is_whole(*key[:2], len(found))) for key, found in pairs.items()]

    def _is_whole(self, before: Operation, after: Operation, pairs: int) -> bool:
        empty = self.is_empty_if_fused(before) or self.is_empty_if_fused(after)
        return not empty and pairs == len(self.jobs_of[before]) * len(self.jobs_of[after])

    @cached_property
    def in_microbatch_order(self) -> dict[Operation, Operation]:
        """For each operation, the same one of the next micro-batch, which follows it in some optimal schedule.

        The last of a type has no entry. Micro-batches of a chain are identical, so the starts of each type may be
        sorted: every precedence is kept, and memory is taken no sooner and freed no later. Excluded are a W that may be
        empty, which runs at its backward, and problems in which micro-batches may differ in more than the modes of
        backwards.
        """
        if not self.jobs.renumbered or self.jobs.release or len(self.merged) < self._choices:
            return {}
        types: dict[tuple[PassKind, int, int], list[Operation]] = {}
        for x in self.jobs_of:
            if self.always(x) and not self.is_empty_if_fused(x):
                types.setdefault((x.role, x.stage, x.part), []).append(x)
        lines = (sorted(line, key=lambda x: x.microbatch) for line in types.values())
        return dict(pair for line in lines for pair in pairwise(line))

    @property
    def _choices(self) -> int:
        """Number of choices that belong to micro-batches: all but those of further gathers."""
        return sum(not choice.gathers for choice in self.jobs.choices)

    @cached_property
    def interchangeable(self) -> list[tuple[Operation, Operation]]:
        """Pairs of the first operations of consecutive micro-batches, for numbering these in the order they begin.

        Empty unless micro-batches may differ in more than the modes of backwards.
        """
        if len(self.merged) == self._choices:
            return []
        return [(self.of[one], self.of[other]) for one, other in self.jobs.interchangeable]

    @cached_property
    def memory_changes(self) -> list[OperationMemory]:
        """The memory that operations take and free.

        The shared B and its W also represent BW; only memory that a BW takes has an entry of its own, which frees as
        much.
        """
        found = []
        for one in self.jobs.holdings:
            other = self._is_other_mode(one.where)
            if one.takes or not other:
                gives = one.takes if other else one.gives
                ends = self._operations(one.first), self._operations(one.last)
                found.append(OperationMemory(one.pool, one.takes, gives, *ends, one.where, min(one.takes, gives)))
        return found

    def memory_by_pass(self, pool: PoolId) -> list[list[OperationMemory]]:
        """Return the memory that operations take and free in a pool, in a list for each micro-batch on a stage.

        Gathers and other passes for the parameters of a stage are in lists of their own, one for each of their numbers.
        """
        found: dict[tuple[bool, StageId, MicrobatchId], list[OperationMemory]] = {}
        for one in self.memory_changes:
            if one.pool == pool:
                x = one.first[0]
                found.setdefault((x.role in OF_PARAMETERS, x.stage, x.microbatch), []).append(one)
        return list(found.values())

    def _operations(self, jobs: Sequence[JobId]) -> tuple[Operation, ...]:
        return tuple(self.of[n] for n in jobs)

    def _is_other_mode(self, n: JobId) -> bool:
        job = self.jobs.jobs[n]
        return job.choice in self.merged and job.task.of.kind is BW


def _one_task_backwards(jobs: Jobs) -> frozenset[ChoiceId]:
    """Return the indices of choices between split and full backward in which B and BW can share one operation.

    B, W and BW have one task each, on the same resources, and both modes free equal memory net of what they take. On
    devices with several streams the full backward takes none, so that nothing else begins while one mode uses more
    memory than the other.
    """
    one_stream = len({one.device for one in jobs.on}) == len(jobs.on)
    by_choice: dict[int, list[int]] = {}
    for n, job in enumerate(jobs.jobs):
        if job.choice is not None:
            by_choice.setdefault(job.choice, []).append(n)
    net: dict[int, dict[int, int]] = {}
    takes = {one.where for one in jobs.holdings if one.takes and jobs.jobs[one.where].task.of.kind is BW}
    for one in jobs.holdings:
        change = net.setdefault(one.where, {})
        change[one.pool] = change.get(one.pool, 0) + one.gives - one.takes
    found = set()
    for choice, members in by_choice.items():
        by_kind = {jobs.jobs[n].task.of.kind: n for n in members}
        if not one_stream and not takes.isdisjoint(members):
            continue
        if (
            len(members) == len(by_kind) == 3
            and by_kind.keys() == {B, W, BW}
            and len({jobs.jobs[n].resources for n in members}) == 1
        ):
            split, weight, fused = (net.get(by_kind[kind], {}) for kind in (B, W, BW))
            pools = split.keys() | weight.keys() | fused.keys()
            if all(split.get(pool, 0) + weight.get(pool, 0) == fused.get(pool, 0) for pool in pools):
                found.add(choice)
    return frozenset(found)
