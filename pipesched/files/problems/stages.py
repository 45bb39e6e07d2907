"""The stages of a problem, made from columns of a file's numbers: costs in ticks, memory, and the tasks of passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pipesched.files.features.catalogue import Feature, first_stream
from pipesched.files.features.tasks import ChainTask, WeightTask
from pipesched.files.problems.pass_tasks import KEYS, StageTasks, Totals, stage_tasks, totals
from pipesched.files.problems.schema import ProblemFile
from pipesched.files.problems.times_in_ticks import Columns, layers_of
from pipesched.problem.quantities import StageId, Ticks
from pipesched.problem.stage import COMPUTE, Stage, TaskSpec
from pipesched.problem.stage_columns import stages_of


def stages_from(form: ProblemFile, features: Sequence[Feature], times: Columns, memory: Columns) -> tuple[Stage, ...]:
    """Return the stages of a file with these features, from columns of times in ticks and of memory.

    Tasks without a stream run on the first one.
    """
    first, count = first_stream(form), len(memory["activation"])
    options = dict[str, Sequence[Any]]()
    for feature in features:
        for key, column in feature.stages(form, times | memory, count).items():
            # What stages run once an iteration may be of several features.
            before = options.get(key) if key == "once" else None
            options[key] = [(*a, *b) for a, b in zip(before, column, strict=True)] if before else column
    memory = {key: column for key, column in memory.items() if isinstance(key, str)} | options
    if form.tasks is None:
        stages = stages_of(**{key: column for key, column in times.items() if isinstance(key, str)}, **memory)
        return stages if first == COMPUTE else tuple(replace(stage, stream=first) for stage in stages)
    ticks = {key: column for key, column in times.items() if isinstance(key, tuple)}
    others = {key: column for key, column in times.items() if isinstance(key, str)}
    layers = layers_of(form.tasks, count)
    lists = {kind: getattr(form.tasks, key) for kind, key in KEYS.items()}
    backward = [task.name or "" for task in form.tasks.backward or ()]

    def tasks_of(stage: StageId) -> StageTasks:
        layer = {
            kind: [_task(task, first, backward, ticks[kind, n][stage]) for n, task in enumerate(tasks)]
            for kind, tasks in lists.items()
            if tasks is not None
        }
        return stage_tasks(layer, layers[stage])

    tasks = [tasks_of(stage) for stage in range(len(layers))]
    passes = dict(zip(Totals._fields, zip(*map(totals, tasks), strict=True), strict=True))
    return stages_of(**others | passes | memory, tasks=tasks, stream=[first] * len(tasks))


def _task(task: ChainTask | WeightTask, first: str, backward: Sequence[str], ticks: Ticks) -> TaskSpec:
    after = task.after if isinstance(task, WeightTask) else None
    needs_input = isinstance(task, WeightTask) or task.needs != "nothing"
    place = None if after is None else backward.index(after)
    return TaskSpec(task.on or first, ticks, task.name or "", place, needs_input)
