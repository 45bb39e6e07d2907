"""The jobs of a problem: every task of its network copied for each micro-batch, numbered, with what ties them.

Multi-mode scheduling: where a backward may run fused or split, the jobs of both are listed and one of them is chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from pipesched.problem.attainable_spans import largest_denominator
from pipesched.problem.passes import BW, B, F, Pass, Task, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import TaskSpec
from pipesched.problem.task_network import Mode, PassType, Resource, TaskNetwork, TaskType


class Job(NamedTuple):
    """A task of one micro-batch. `choice` is the backward whose mode decides whether it runs, None if it always does.

    `steps` is its length: `scale` steps a tick, and one step where it takes no time.
    """

    task: Task
    resource: Resource
    steps: int
    choice: int | None = None
    fused: bool = False


class Tie(NamedTuple):
    """A job starts no sooner than `lag` steps after the end of that one of the alternatives that runs."""

    after: int
    alternatives: tuple[int, ...]
    lag: int


class Holding(NamedTuple):
    """What a pass takes of its device's memory as its first job starts, and gives back when its last one has ended.

    `first` are the jobs that wait for none of the same pass, `last` those after all of which it has ended.
    """

    device: int
    takes: int
    gives: int
    first: tuple[int, ...]
    last: tuple[int, ...]


@dataclass(frozen=True)
class Jobs:
    """`choices` are the (stage, micro-batch) whose backward may run in either mode. `room` is as in the network.

    `zeros` jobs take no time. Each of them has one step, so that every job has its own place in an order. All these
    steps together are less than the least part of a tick by which values differ (`parts` of `attainable_spans`).
    """

    problem: Problem
    jobs: tuple[Job, ...]
    ties: tuple[Tie, ...]
    holdings: tuple[Holding, ...]
    choices: tuple[tuple[int, int], ...]
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
    def in_turn(self) -> tuple[tuple[int, int], ...]:
        """Jobs of one type, each with that of the next micro-batch, which in some best schedule comes after it.

        Micro-batches of a chain are alike, so the starts of each type may be sorted: every precedence is kept, and
        memory is taken no sooner and given back no later. Not so where backwards of two lengths may stand for another.
        """
        if self.choices or self.problem.microbatch_scale:
            return ()
        by_type: dict[TaskType, list[tuple[int, int]]] = {}
        for n, job in enumerate(self.jobs):
            kind, stage, j = job.task.of
            by_type.setdefault(TaskType(kind, stage, job.task.part), []).append((j, n))
        lines = (sorted(line) for line in by_type.values())
        return tuple((a[1], b[1]) for line in lines for a, b in pairwise(line))


def jobs_of(problem: Problem, passes: Collection[Pass] | None = None) -> Jobs:
    """The jobs of all passes, or of these alone: what others would have to end before them is then left out."""
    network = problem.network
    held = [
        Pass(kind, stage, j)
        for kind, stage in network.tasks
        for j in problem.microbatches_of[stage]
        if (passes is None or Pass(kind, stage, j) in passes) and not (kind is BW and never_better(problem, stage))
    ]
    kinds: dict[tuple[int, int], set[bool]] = {}
    for p in held:
        if p.kind is not F:
            kinds.setdefault((p.stage, p.microbatch), set()).add(p.kind is BW)
    choices = tuple(sorted(where for where, modes in kinds.items() if len(modes) == len(Mode)))
    choice = {where: n for n, where in enumerate(choices)}
    types = network.tasks
    zeros = sum(task.ticks == 0 for p in held for task in types[p.kind, p.stage])
    parts = largest_denominator(problem)
    scale = parts * zeros + 1
    jobs = tuple(
        Job(
            Task(p, part),
            task.resource,
            max(1, task.ticks * scale),
            None if p.kind is F else choice.get((p.stage, p.microbatch)),
            p.kind is BW,
        )
        for p in held
        for part, task in enumerate(types[p.kind, p.stage])
    )
    number = {job.task: n for n, job in enumerate(jobs)}
    ties = tuple(_ties(problem, held, number, scale))
    return Jobs(problem, jobs, ties, tuple(_holdings(problem, held, number)), choices, network.room, parts, zeros)


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
                found.append(Tie(number[Task(p, arc.after.part)], here, arc.lag * scale))
    return found


def _holdings(problem: Problem, held: list[Pass], number: dict[Task, int]) -> list[Holding]:
    """The passes that change the level of a device's memory."""
    network = problem.network
    first = {pass_type: _first_parts(network, pass_type) for pass_type in network.tasks}
    found = []
    for p in held:
        change = network.change[p.kind, p.stage]
        # What is taken at the end counts from the start on, what is given back at the start only from the end on.
        takes = max(0, change.at_start) + max(0, change.at_end)
        gives = max(0, -change.at_start) + max(0, -change.at_end)
        if takes or gives:
            sides = first[p.kind, p.stage], network.ends[p.kind, p.stage]
            ends = (tuple(number[Task(p, part)] for part in parts) for parts in sides)
            found.append(Holding(problem.placement.stage_device[p.stage], takes, gives, *ends))
    return found


def _first_parts(network: TaskNetwork, pass_type: PassType) -> tuple[int, ...]:
    """The tasks of a pass that wait for none of the same pass."""
    arcs = network.arcs_into[pass_type]
    later = {arc.after.part for arc in arcs if any(other.pass_type == pass_type for other in arc.alternatives)}
    return tuple(part for part in range(len(network.tasks[pass_type])) if part not in later)
