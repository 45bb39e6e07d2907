"""Head and tail of a stream: its load, the least way to its first task, and the least way back from its last one.

Both ways belong to the span of any device that each of them passes; for the makespan they are from time 0, and to the
end of all (Jackson's bound for one machine with heads and tails, along chains of tasks).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pipesched.problem.formatting import amount
from pipesched.problem.network.task_network import Arc, Resource, TaskType
from pipesched.problem.passes import BW, F
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import AroundStream
from solver.bounds.analytic.catalogue import BOUNDS, Bound

# The least ticks of a path to or from each task; None where there is no such path.
Lengths = Mapping[TaskType, int | None]


def stream_head_and_tail(problem: Problem, objective: Objective) -> list[Certificate]:
    """For each stream the strongest of all devices' spans; nothing where two passes may run as one, shorter block.

    Where a pass is one task, `head and tail` says more.
    """
    if problem.network.one_task_each or problem.overlaps:
        return []
    network, found = _Network(problem), []
    for where, tasks in network.on.items():
        if not network.always_runs(where):
            continue
        work, best = network.work(where), None
        for whose in [None] if objective is Objective.MAKESPAN else range(problem.devices):
            heads, tails = network.heads(whose), network.tails(whose)
            to, back = ([ways[task] for task in tasks] for ways in (heads, tails))
            if None in to or None in back:
                continue
            ways = min(way for way in to if way is not None), min(way for way in back if way is not None)
            if best is None or sum(ways) > sum(best[1]):
                best = whose, ways
        if best is not None:
            found.append(_certificate(problem, where, work, *best))
    return found


def _certificate(problem: Problem, where: Resource, work: int, whose: int | None, ways: tuple[int, int]) -> Certificate:
    value = ways[0] + work + ways[1]
    since, until = "", "the end of all"
    if whose is not None:
        since, until = f" after device {whose} began", f"the end of what device {whose} runs after it"
    text = (
        f"Stream {where.stream} of device {where.device} cannot begin before {amount(problem, ways[0])}{since}. Its "
        f"tasks take {amount(problem, work)}, one at a time. From the end of its last one to {until} it takes "
        f"{amount(problem, ways[1])} at least: {amount(problem, value)}."
    )
    return Certificate("stream head and tail", value, text, where.device, AroundStream(*where, whose))


class _Network:
    """The tasks of one micro-batch, of each that walks here, with least ways among them."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._network = problem, problem.network
        walked = problem.microbatches_of
        self._tasks = [
            TaskType(kind, stage, part)
            for (kind, stage), tasks in problem.network.tasks.items()
            if walked[stage]
            for part in range(len(tasks))
        ]
        self._into: dict[TaskType, list[Arc]] = {task: [] for task in self._tasks}
        self._out: dict[TaskType, list[Arc]] = {task: [] for task in self._tasks}
        for arc in problem.network.arcs:
            if arc.after in self._into:
                self._into[arc.after].append(arc)
                for before in arc.alternatives:
                    self._out[before].append(arc)
        self.on: dict[Resource, list[TaskType]] = {}
        for task in self._tasks:
            self.on.setdefault(self._where(task), []).append(task)
        self._sequence = list(self._in_order())

    def _where(self, task: TaskType) -> Resource:
        return self._network.tasks[task.pass_type][task.part].resource

    def _ticks(self, task: TaskType) -> int:
        return self._network.tasks[task.pass_type][task.part].ticks

    def _in_order(self) -> Iterator[TaskType]:
        """Every task behind all that it may wait for."""
        left = {task: {a for arc in arcs for a in arc.alternatives} for task, arcs in self._into.items()}
        while left:
            ready = [task for task, needs in left.items() if not needs & left.keys()]
            for task in ready:
                del left[task]
            yield from ready

    def work(self, where: Resource) -> int:
        """The least time that a resource runs: each backward in the mode that takes less of it."""
        total = 0
        for stage in self._problem.placement.stages_of[where.device]:
            of = {True: 0, False: 0}
            forward = 0
            for task in self.on[where]:
                if task.stage == stage and task.kind is F:
                    forward += self._ticks(task)
                elif task.stage == stage:
                    of[task.kind is BW] += self._ticks(task)
            total += (forward + min(of[fused] for fused in self._modes(stage))) * len(
                self._problem.microbatches_of[stage]
            )
        return total

    def always_runs(self, where: Resource) -> bool:
        """Whether a resource has something to run whatever the modes: else it has neither a first nor a last task."""
        stages: dict[int, set[bool]] = {}
        for task in self.on[where]:
            stages.setdefault(task.stage, set()).update(
                self._modes(task.stage) if task.kind is F else {task.kind is BW}
            )
        return any(modes == self._modes(stage) for stage, modes in stages.items())

    def _modes(self, stage: int) -> set[bool]:
        """Whether backwards of a stage may be fused, and whether they may be split."""
        return {kind is BW for kind, s in self._network.tasks if s == stage and kind is not F}

    def heads(self, whose: int | None) -> Lengths:
        """From time 0, or from the first start of a device, to the start of each task, along its micro-batch."""
        found: dict[TaskType, int | None] = {}
        for task in self._sequence:
            ways: list[int | None] = [0 if whose in (None, self._where(task).device) else None]
            for arc in self._into[task]:
                # Of alternatives one runs.
                each = [found[a] for a in arc.alternatives]
                known = [way + self._ticks(a) for a, way in zip(arc.alternatives, each, strict=True) if way is not None]
                ways.append(min(known) + arc.lag if len(known) == len(each) else None)
            found[task] = max((way for way in ways if way is not None), default=None)
        return found

    def tails(self, whose: int | None) -> Lengths:
        """From the end of each task to the end of all, or to that of what a device runs, along its micro-batch."""
        found: dict[TaskType, int | None] = {}
        for task in reversed(self._sequence):
            here = 0 if whose in (None, self._where(task).device) else None
            found[task] = max((way for way in (here, *self._behind(task, found)) if way is not None), default=None)
        return found

    def _behind(self, task: TaskType, tails: Lengths) -> Iterator[int | None]:
        """The ways by what must run after a task: all that always runs, and of a backward's modes the shorter."""
        by_mode: dict[int, dict[bool, list[int | None]]] = {}
        for arc in self._out[task]:
            after, tail = arc.after, tails[arc.after]
            way = None if tail is None else arc.lag + self._ticks(after) + tail
            if after.kind is F or (task.kind is not F and task.stage == after.stage):
                yield way
            else:
                by_mode.setdefault(after.stage, {}).setdefault(after.kind is BW, []).append(way)
        for stage, modes in by_mode.items():
            if modes.keys() == self._modes(stage):
                longest = [max((way for way in ways if way is not None), default=None) for ways in modes.values()]
                yield None if None in longest else min(way for way in longest if way is not None)


BOUNDS.register(Bound("stream head and tail", stream_head_and_tail, rank=3, several_streams=True))
