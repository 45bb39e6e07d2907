"""Argument: tasks of passes as stages of their own, each pass one task: bounds of that problem hold for this one.

Every schedule becomes one of that problem that is no longer and uses no more memory: the passes of a row are its tasks,
at their times. These wait for each other along the chain as tasks do, and a device there runs what a stream runs.

A missing W takes no time, directly after its B. There must be a task of F and of B: a missing one might have to run
while the device runs the other of another micro-batch. All that a device runs is within the time in which the real one
is in use, so that no span is longer.

A full backward is B and W at once, if its tasks are theirs, each of W after its predecessors. Memory is taken by a
later task than that with which F begins, and released by one before that with which B ends, and W: one of its tasks
waits for the backward of the row, or the release of W is left out. So is the memory that B takes in addition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from pipesched.checking.coverage import require_covered
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.checking.streams.tasks import interleaves
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, TaskPart
from pipesched.problem.stage import Stage, TaskSpec
from pipesched.results.evidence import TasksAsStages

# A stage, and the indices of a task of its F, of its B (BW if never split) and of its W; None: without one.
Row = tuple[StageId, TaskPart | None, TaskPart | None, TaskPart | None]


def as_plain(problem: Problem, relaxation: TasksAsStages) -> Problem:
    """Return the problem with a stage for each row of tasks.

    A row names a stage, and the indices of one task of its F, of its B and of its W. Its devices are streams: first
    those of the problem's devices that stages compute on, under the same numbers, then the others, without a limit of
    memory. `RefusedEvidenceError` if the rows are not of the problem's stages and tasks, or do not follow each other as
    these do; `NotCoveredError` if a schedule of the problem may not become one of the rows, as with overlapped blocks.
    """
    _require_tasks(problem)
    rows, chains = relaxation.stages, problem.placement.chains
    if [stage for stage, _ in groupby(rows, lambda row: row[0])] != [stage for chain in chains for stage in chain]:
        raise RefusedEvidenceError("rows that are not of each stage, chain after chain")
    for number, own in groupby(rows, lambda row: row[0]):
        _require_rows(problem.stages[number], number, [*own])
    streams = [
        (problem.placement.stage_device[row[0]], _tasks_of(problem.stages[row[0]], row)[0].stream) for row in rows
    ]
    first = dict.fromkeys((device, problem.stages[0].stream) for device in range(problem.devices))
    devices = {stream: device for device, stream in enumerate(first | dict.fromkeys(streams))}
    where = tuple(devices[stream] for stream in streams)
    on_chain = [tuple(n for n, row in enumerate(rows) if row[0] in chain) for chain in chains]
    return replace(
        problem,
        placement=Placement("tasks as stages", len(devices), where, tuple(on_chain)),
        stages=tuple(_stages(problem, rows, where)),
        pools=(*problem.pools, *(Pool(),) * (len(devices) - problem.devices)),
        links=(),
        resources=replace(problem.resources, streams=()),
        walks=replace(problem.walks, queues=()),
    )


def _require_tasks(problem: Problem) -> None:
    """Raise `NotCoveredError` if a schedule of the problem may not become one of the rows."""
    require_covered(problem, frozenset({"tasks"}))
    if not problem.objective.of_one_iteration:
        raise NotCoveredError(f"tasks as stages of a problem with {problem.objective.with_article}")
    for stage in problem.stages:
        if stage.in_blocks:
            raise NotCoveredError("tasks as stages of blocks of two passes")
        if not all(task.needs_input for _, own in stage.tasks for task in own):
            raise NotCoveredError("tasks as stages where tasks need nothing of the stage before")
        if W in stage.kinds and not _in_one_go(stage):
            raise NotCoveredError("tasks as stages of a backward that may be better in one go")


def _in_one_go(stage: Stage) -> bool:
    """Return True if BW is B followed by W.

    That is, BW is one task no shorter than both, all three being one task on one stream, or it interleaves their tasks.
    """
    fused, backward, weight = ([task._replace(name="") for task in stage.tasks_of(kind)] for kind in (BW, B, W))
    if len(fused) == len(backward) == len(weight) == 1 == len({one[0].stream for one in (fused, backward, weight)}):
        return fused[0].ticks >= backward[0].ticks + weight[0].ticks
    return interleaves(fused, backward, weight)


def _require_rows(stage: Stage, number: StageId, rows: Sequence[Row]) -> None:
    """Raise `RefusedEvidenceError` if the rows of a stage could not be stages with one pass of each kind.

    The tasks of a row must exist and be on one stream, with one of F and one of B at least, of which one of W waits for
    the latter. From row to row the tasks of F must be in ascending, those of B in descending order, and no task of W
    may be in two rows. `number` is the stage's, for messages.
    """
    forwards, backwards, weights = ([task for row in rows if (task := row[at]) is not None] for at in (1, 2, 3))
    for kind, numbers in zip((F, B, W), (forwards, backwards, weights), strict=True):
        there = len(_tasks(stage, kind)) if kind is not W or stage.weight is not None else 0
        if not all(0 <= number_of < there for number_of in numbers):
            raise RefusedEvidenceError(f"stage {number} has no such task of {kind}")
    if forwards != sorted(set(forwards)) or backwards[::-1] != sorted(set(backwards)):
        raise RefusedEvidenceError(f"tasks of stage {number} that do not follow each other as the rows do")
    if len(set(weights)) < len(weights):
        raise RefusedEvidenceError(f"a task of W of stage {number} in two rows")
    for row in rows:
        if row[1] is None or row[2] is None:
            raise RefusedEvidenceError(f"a row of stage {number} without a task of F or of B")
        if row[3] is not None and not _waits(stage.tasks_of(W)[row[3]], row[2]):
            raise RefusedEvidenceError(f"a task of W of stage {number} that may run before the backward of its row")
        if len({task.stream for task in _tasks_of(stage, row)}) > 1:
            raise RefusedEvidenceError(f"a row of stage {number} on several streams")


def _waits(weight: TaskSpec, backward: TaskPart | None) -> bool:
    return weight.after is None or (backward is not None and weight.after >= backward)


def _tasks(stage: Stage, kind: object) -> tuple[TaskSpec, ...]:
    """Return the tasks of F, of W, or of the backward in the mode in which rows number them.

    `kind` is F, W, or anything else for the backward.
    """
    return stage.tasks_of(F if kind is F else W if kind is W else BW if stage.weight is None else B)


def _tasks_of(stage: Stage, row: Row) -> list[TaskSpec]:
    """Return the tasks of a row's F and B, and of its W if it has one."""
    pairs = zip((F, B, W), row[1:], strict=True)
    return [_tasks(stage, kind)[number] for kind, number in pairs if number is not None]


def _stages(problem: Problem, rows: Sequence[Row], where: Sequence[DeviceId]) -> Iterator[Stage]:
    """Yield the stage of each row; `where` has the device of each, the first on a stage's own device has its memory."""
    holding = set[int]()
    for at, row in enumerate(rows):
        number = row[0]
        stage = problem.stages[number]
        splits = W in stage.kinds
        forward, backward, *weights = (task.ticks for task in _tasks_of(stage, row))
        weight = sum(weights)
        last = at + 1 == len(rows) or rows[at + 1][0] != number
        after = problem.placement.next[number] if last else None
        lags = () if after is None else (problem.lag(number, after), problem.lag(after, number))
        activation = freed = static = 0
        if where[at] == problem.placement.stage_device[number] and number not in holding:
            holding.add(number)
            freed, static = max(0, stage.freed), stage.static
            after_backward = not splits or any(_waits(task, row[2]) for task in stage.tasks_of(W))
            activation = stage.activation if after_backward else freed
        yield Stage(
            forward,
            backward,
            weight if splits else None,
            backward + weight,
            min(lags, default=0),
            activation=activation,
            freed=freed,
            static=static,
        )
