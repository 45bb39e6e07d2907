"""Least times, along chains of tasks of equal micro-batches, to the first, second, ... task of a type and from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from graphlib import TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.network.task_network import Mode, Resource, TaskType
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, TickArray, Ticks
from pipesched.problem.stage import Stage

# For each type of task, the ticks for its micro-batches in the order of their starts; None if there is no path.
TimesByTask = Mapping[TaskType, TickArray | None]
# Problems with larger sums of times are left to other bounds.
_MOST = 2**60
_BACKWARDS = (B, W, BW)


def stream_chains(problem: Problem) -> StreamChains | None:
    """Return the chains of a problem whose passes consist of several tasks; None if they are not covered.

    Not covered are problems of one task per pass, with blocks, or of unequal micro-batches; split backwards of several
    tasks that may be shorter as full backwards; and times whose sum exceeds 2**60 ticks.
    """
    network = problem.network
    if network.one_task_each or network.blocks or network.scale:
        return None
    if Mode.SPLIT in network.modes:
        problem = replace(problem, stages=tuple(map(_with_split_backward, problem.stages)))
        if not all(fused_is_dominated(problem, s) for s in range(problem.placement.stages)):
            return None
    chains = StreamChains(problem)
    return chains if chains.longest <= _MOST else None


def _with_split_backward(stage: Stage) -> Stage:
    """Return the stage with a backward that is B followed by W.

    It has the lesser ticks and memory of the split and the full mode. If B, W or BW has several tasks or a stream of
    its own, only memory that B takes is changed.
    """
    stage = replace(stage, freed=max(0, stage.freed))
    own = [stage.tasks_after_receipt(kind) for kind in _BACKWARDS]
    if any(len(tasks) > 1 or tasks[0].stream != stage.stream for tasks in own):
        return stage
    others = dict(each for each in stage.tasks if each[0] not in _BACKWARDS)
    (gradient,), (weights,), (fused,) = own
    backward, whole = (min(fused.ticks, ticks) for ticks in (gradient.ticks, gradient.ticks + weights.ticks))
    two = replace(stage, backward=backward, weight=whole - backward, fused=whole, tasks=tuple(others.items()))
    receipt = stage.tasks_of(B)[:-1]
    if not receipt:
        return two
    return two.with_tasks(others | {kind: (*receipt, *two.tasks_of(kind)) for kind in (B, BW)})


class StreamChains:
    """The types of tasks that run, and the tasks that each waits for in its micro-batch.

    Backwards are split where possible. `problem` is the relaxation for which the bounds are computed. `ticks` has the
    duration of each type of task, `on` the types that occupy each resource; no path is longer than `longest` ticks.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, network, walked = problem, problem.network, problem.microbatches_of
        self._device = problem.placement.stage_device
        self.ticks = {
            TaskType(*pass_type, part): task.ticks
            for pass_type, tasks in network.tasks.items()
            if pass_type[0] in (F, *network.backwards[0]) and walked[pass_type[1]]
            for part, task in enumerate(tasks)
        }
        self.on: dict[Resource, list[TaskType]] = {}
        for task in self.ticks:
            for where in network.tasks[task.pass_type][task.part].resources:
                self.on.setdefault(where, []).append(task)
        self._before: dict[TaskType, list[tuple[TaskType, int]]] = {task: [] for task in self.ticks}
        self._after: dict[TaskType, list[tuple[TaskType, int]]] = {task: [] for task in self.ticks}
        for arc in network.arcs:
            if not all(before.kind in (F, B, W, BW) for before in arc.alternatives):
                continue  # what offloading and recomputation ask for besides
            for before in arc.alternatives if arc.after in self.ticks else ():
                # Arcs that apply only to some micro-batches give no bound.
                whole = arc.share is None or (*map(len, arc.share),) == (
                    len(walked[before.stage]),
                    len(walked[arc.after.stage]),
                )
                if before in self.ticks and whole:
                    self._before[arc.after].append((before, arc.lag))
                    self._after[before].append((arc.after, arc.lag))
        needs = {task: [before for before, _ in arcs] for task, arcs in self._before.items()}
        self._sequence = list(TopologicalSorter(needs).static_order())
        self._count = {task: len(walked[task.stage]) for task in self.ticks}
        lags = sum(arc.lag for arc in network.arcs)
        self.longest = sum(ticks * self._count[task] for task, ticks in self.ticks.items()) + lags

    def heads(self, whose: DeviceId | None) -> TimesByTask:
        """Return by task type the least ticks to its first, second, ... start.

        They are an array with an entry for each micro-batch, ascending. They count from time 0 or, with `whose`, from
        the first start of that device; None for a type that no path from there reaches.
        """
        found: dict[TaskType, NDArray[np.int64] | None] = {}
        for task in self._sequence:
            before = ((found[other], self.ticks[other] + lag) for other, lag in self._before[task])
            paths = [self._dealt(times, task) + between for times, between in before if times is not None]
            found[task] = self._spaced(task, paths, whose)
        return found

    def first_tasks(self, kind: PassKind, stage: StageId) -> list[TaskType]:
        """Return the task types of a pass (`kind` on `stage`) that wait for no other task of the same pass."""
        own = [task for task in self._sequence if task.pass_type == (kind, stage)]
        return [task for task in own if all(before.pass_type != (kind, stage) for before, _ in self._before[task])]

    def since(self, kind: PassKind, stage: StageId) -> dict[TaskType, Ticks]:
        """Return by task type the least ticks from the start of a pass to the end of that task of the same micro-batch.

        The pass is `kind` on `stage`; only its own tasks and those that follow it have an entry.
        """
        found, first = dict[TaskType, int](), self.first_tasks(kind, stage)
        for task in self._sequence:
            paths = [found[before] + lag for before, lag in self._before[task] if before in found]
            if paths or task in first:
                found[task] = max(paths, default=0) + self.ticks[task]
        return found

    def tails(self, whose: DeviceId | None) -> TimesByTask:
        """Return by task type the least ticks from its first, second, ... end to the end of the schedule.

        Each entry is an array with a number for each micro-batch, descending. With `whose` they count to the end of
        that device's tasks; None for a type from which no path leads there.
        """
        found: dict[TaskType, NDArray[np.int64] | None] = {}
        for task in reversed(self._sequence):
            paths = [
                self._dealt(times[::-1], task) + self.ticks[after] + lag
                for after, lag in self._after[task]
                if (times := found[after]) is not None
            ]
            turned = self._spaced(task, paths, whose)
            found[task] = None if turned is None else turned[::-1]
        return found

    def _dealt(self, times: TickArray, task: TaskType) -> TickArray:
        """Return for each micro-batch of `task` the entry of `times` that corresponds to it.

        For the k-th, k = 1 to m, it is number ceil(k n / m). `times` are the n times of a neighbouring task, of another
        chain where n is not m.
        """
        own, other = self._count[task], len(times)
        found: NDArray[np.int64] = times[-(-np.arange(1, own + 1) * other // own) - 1]
        return found

    def _spaced(self, task: TaskType, paths: list[TickArray], whose: DeviceId | None) -> TickArray | None:
        """Return the entrywise largest of `paths`, raised so that consecutive entries are the task's duration apart.

        If the device of `task` is `whose`, or `whose` is None, paths of length 0 are added. None if there is no path.
        """
        if whose in (None, self._device[task.stage]):
            paths = [*paths, np.zeros(self._count[task], np.int64)]
        if not paths:
            return None
        own = np.arange(self._count[task]) * self.ticks[task]
        longest: NDArray[np.int64] = np.maximum.accumulate(np.maximum.reduce(paths) - own) + own
        return longest
