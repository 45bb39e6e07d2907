"""Conversion of a file's section `tasks`, which describes one layer, to the tasks of every stage's passes, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from pipesched.files.exact_numbers import as_number
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.quantities import Ticks
from pipesched.problem.stage import Stage, TaskSpec

# The tasks of one layer's passes, W's with the place of the task of B that each waits for.
Layer = Mapping[PassKind, Sequence[TaskSpec]]
# As in `Stage.tasks`.
StageTasks = tuple[tuple[PassKind, tuple[TaskSpec, ...]], ...]
KEYS = {F: "forward", B: "backward", W: "weight"}


class Totals(NamedTuple):
    """Total ticks of the tasks of a stage's passes: `forward` of F, `backward` of B, `weight` of W, `fused` of BW.

    `weight` is None if there is no W.
    """

    forward: Ticks
    backward: Ticks
    weight: Ticks | None
    fused: Ticks


def stage_tasks(layer: Layer, layers: int) -> StageTasks:
    """Return the tasks of every kind of pass of a stage with `layers` layers, from the tasks of one layer.

    A backward runs the layers last to first. BW is the backward with each task of W directly after the task that it
    waits for; tasks that wait for the whole backward are last. With several layers a task's name ends with its layer's
    number.
    """
    last = range(layers - 1, -1, -1)
    forward = tuple(_named(task, n, layers) for n in range(layers) for task in layer[F])
    backward = tuple(_named(task, n, layers) for n in last for task in layer[B])
    if W not in layer:
        return (F, forward), (BW, backward)
    width = len(layer[B])
    weight = tuple(
        _named(task, n, layers)._replace(after=None if task.after is None else turn * width + task.after)
        for turn, n in enumerate(last)
        for task in layer[W]
    )
    after: dict[int | None, list[TaskSpec]] = {}
    for task in weight:
        after.setdefault(task.after, []).append(task._replace(after=None))
    fused = [one for part, task in enumerate(backward) for one in (task, *after.get(part, ()))]
    fused += after.get(None, [])
    return (F, forward), (B, backward), (W, weight), (BW, _with_own_names(fused))


def _named(task: TaskSpec, number: int, layers: int) -> TaskSpec:
    return task._replace(name=f"{task.name}.{number}") if layers > 1 else task


def _with_own_names(tasks: Sequence[TaskSpec]) -> tuple[TaskSpec, ...]:
    """Return the tasks of BW with unique names: a task of W with the name of one of B gets `w-` before it."""
    found: dict[str, TaskSpec] = {}
    for task in tasks:
        name = task.name
        while name in found:
            name = f"w-{name}"
        found[name] = task._replace(name=name)
    return tuple(found.values())


def totals(tasks: StageTasks) -> Totals:
    """Return the total ticks of the tasks of each kind of pass: its duration if they run one after the other.

    Tasks of all streams count. Without tasks of W, `weight` is None, and both `backward` and `fused` are the full
    backward.
    """
    ticks = {kind: sum(task.ticks for task in own) for kind, own in tasks}
    if W not in ticks:
        return Totals(ticks[F], ticks[BW], None, ticks[BW])
    return Totals(ticks[F], ticks[B], ticks[W], ticks[BW])


def tasks_section(stages: Sequence[Stage], tick: Fraction) -> dict[str, object]:
    """Return the section `tasks` of a file for these stages, with times in the file's unit.

    `forward`, `backward` and any `weight` list the tasks of one layer; times are exact numbers, a list by stage where
    stages differ. `layers` is there only if some stage has more than one layer. A tick is `tick` of the unit.
    ValueError if a file cannot express the stages.
    """
    layers = [_layers(stage) for stage in stages]
    found = [_one_layer(stage, count) for stage, count in zip(stages, layers, strict=True)]
    for stage, layer, count in zip(stages, found, layers, strict=True):
        expected = stage_tasks(layer, count) if {F, B} <= layer.keys() else ()
        if (
            not expected
            or stage.tasks != expected
            or _without_times(layer) != _without_times(found[0])
            or stage.in_blocks
        ):
            raise ValueError("a problem file gives passes of several tasks as those of one layer, alike on every stage")
        if totals(expected) != (stage.forward, stage.backward, stage.weight, stage.fused):
            raise ValueError("a problem file gives passes of several tasks the time of those tasks and no other")
    document: dict[str, object] = {}
    for kind, tasks in found[0].items():
        rows = [_row(task, found[0][B], stages[0].stream) for task in tasks]
        for n, row in enumerate(rows):
            times = [as_number(layer[kind][n].ticks * tick) for layer in found]
            row["time"] = times[0] if len(set(times)) == 1 else times
        document[KEYS[kind]] = rows
    if any(count > 1 for count in layers):
        document["layers"] = layers[0] if len(set(layers)) == 1 else layers
    return document


def _layers(stage: Stage) -> int:
    """Return the number of layers of a stage, read from the number at the end of its forward's last task name.

    Else 1.
    """
    last = stage.tasks_of(F)[-1].name.rpartition(".")
    return int(last[2]) + 1 if last[0] and last[2].isdigit() else 1


def _one_layer(stage: Stage, layers: int) -> Layer:
    """Return the tasks of one layer of a stage: the first layer of the forward, the last of the backward."""
    tasks = dict(stage.tasks)
    if W not in tasks and BW in tasks:
        tasks[B] = tasks[BW]
    chosen = {kind: tasks[kind][: len(tasks[kind]) // layers] for kind in KEYS if kind in tasks}
    if layers == 1:
        return chosen
    return {kind: [t._replace(name=t.name.rpartition(".")[0]) for t in tasks] for kind, tasks in chosen.items()}


def _without_times(layer: Layer) -> list[tuple[PassKind, list[TaskSpec]]]:
    return [(kind, [task._replace(ticks=0) for task in tasks]) for kind, tasks in layer.items()]


def _row(task: TaskSpec, backward: Sequence[TaskSpec], first: str) -> dict[str, object]:
    """Return the keys of a task in the file, without its time.

    `backward` has B's tasks, `first` is the default stream.
    """
    row: dict[str, object] = {"name": task.name}
    if task.stream != first:
        row["on"] = task.stream
    if task.after is not None:
        row["after"] = backward[task.after].name
    if not task.needs_input:
        row["needs"] = "nothing"
    return row
