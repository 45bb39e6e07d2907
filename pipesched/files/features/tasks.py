"""The keys `streams` and `tasks` of a problem file: passes made of tasks, and transfers, that run on streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from pipesched.errors import did_you_mean
from pipesched.files.features.catalogue import FEATURES, Feature, ProblemForm
from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list
from pipesched.files.fields.link_times import stream_of
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import SEVERAL_LAYERS, Part, Refused, at, given, of_value
from pipesched.files.limits import MOST_TASKS
from pipesched.files.schema_errors import shown
from pipesched.problem.features.device_resources import SENDING
from pipesched.problem.passes import F
from pipesched.problem.stage import COMPUTE

# The times that tasks stand in for, and those that go with plain passes alone.
PLAIN_TIMES = ("forward", "backward", "weight", "fused", "overlapped")


class ChainTask(Section):
    """A task of a forward or a backward: it starts when the one before it has ended."""

    required = ("name", "time")

    name: field_types.Name | None = Field(None, description="what it is called; each name once in a list")
    on: field_types.Name | None = Field(None, description="the stream that runs it; default: the first")
    time: field_types.Numbers | None = Field(None, description="its duration")
    needs: Annotated[Literal["nothing", "input"], field_types.one_of("nothing", "input")] = Field(
        "input", description="nothing: at the beginning of a forward, it does not wait for the stage before"
    )


class WeightTask(Section):
    """A task of the backward for the weights: it waits for its backward task and for none of the others here."""

    required = ("name", "time")

    name: field_types.Name | None = Field(None, description="what it is called; each name once in a list")
    on: field_types.Name | None = Field(None, description="the stream that runs it; default: the first")
    time: field_types.Numbers | None = Field(None, description="its duration")
    after: field_types.Name | None = Field(None, description="a task of backward; default: after the whole backward")


class Tasks(Section):
    """Passes made of tasks, instead of times.forward, backward and weight."""

    required = ("forward", "backward")

    forward: list[ChainTask] | None = Field(
        None, description="the tasks of a layer's forward, each after the one before"
    )
    backward: list[ChainTask] | None = Field(
        None, description="the tasks of a layer's backward, each after the one before"
    )
    weight: list[WeightTask] | None = Field(None, description="each on its own; without them, backward is the full one")
    layers: field_types.Counts | None = Field(None, description="how often a pass runs its tasks in a row; default 1")


def _mistakes(form: ProblemForm, stages: int | None, wrong: WrongPaths) -> Iterator[str]:
    """Yield a line for each broken rule of streams and tasks; nothing for sections that have wrong values.

    `stages` is the number of stages, None if not known.
    """
    if any(path.startswith(("streams", "tasks", "times.transfer")) for path in wrong):
        return
    streams = form.streams or [COMPUTE]
    for n, name in enumerate(streams):
        if name in streams[:n]:
            yield f"streams[{n}]: found {name!r} twice; allowed: each name once"
    sending = stream_of(form.times.transfer) if form.times else None
    if sending is not None:
        yield from _unknown("times.transfer.on", sending, streams)
    if form.tasks is None:
        return
    for key in PLAIN_TIMES:
        if key not in ("fused", "overlapped") and getattr(form.times, key, None) is not None:
            yield f"times.{key}: found with tasks; allowed: one of them, since tasks say what passes take"
    for key, tasks in _task_lists(form):
        yield from _list(f"tasks.{key}", tasks, streams)
    names = [task.name for task in form.tasks.backward or () if task.name]
    for n, task in enumerate(form.tasks.weight or ()):
        if task.after is not None and names:
            yield from _unknown(f"tasks.weight[{n}].after", task.after, names)
    yield from _lookups(form)
    yield from _count(form, stages)


def _lookups(form: ProblemForm) -> Iterator[str]:
    """Yield mistakes of tasks that need no input.

    Such tasks must be first in a forward of one layer, before a task that needs the input.
    """
    assert form.tasks is not None
    for n, task in enumerate(form.tasks.backward or ()):
        if task.needs == "nothing":
            yield f"tasks.backward[{n}].needs: found nothing; allowed: in tasks.forward"
    given = [task.needs == "nothing" for task in form.tasks.forward or ()]
    if not any(given):
        return
    if all(given):
        yield "tasks.forward: found no task that needs its input; allowed: the last one does"
    elif sorted(given, reverse=True) != given:
        yield "tasks.forward: found a task that needs nothing behind one that needs its input; allowed: before it"


def _task_lists(form: ProblemForm) -> Iterator[tuple[str, Sequence[ChainTask | WeightTask]]]:
    """Yield (key, tasks) for each list of tasks that the file gives: forward, backward and weight."""
    if form.tasks is not None:
        lists: dict[str, Sequence[ChainTask | WeightTask] | None]
        lists = {"forward": form.tasks.forward, "backward": form.tasks.backward, "weight": form.tasks.weight}
        yield from ((key, tasks) for key, tasks in lists.items() if tasks is not None)


def _list(path: str, tasks: Sequence[ChainTask | WeightTask], streams: list[str]) -> Iterator[str]:
    if not tasks:
        yield f"{path}: found []; allowed: at least one task, with name and time"
    for n, task in enumerate(tasks):
        here = f"{path}[{n}]"
        yield from task.missing(here)
        if task.name == SENDING:
            yield f"{here}.name: found {SENDING!r}; allowed: any other name, since the task that sends on is called so"
        elif task.name is not None and task.name in [one.name for one in tasks[:n]]:
            yield f"{here}.name: found {task.name!r} twice; allowed: each name once"
        if task.on is not None:
            yield from _unknown(f"{here}.on", task.on, streams)


def _unknown(path: str, name: str, known: list[str]) -> Iterator[str]:
    if name not in known:
        yield f"{path}: found {shown(name)}; allowed: {', '.join(known)}{did_you_mean(name, known)}"


def _count(form: ProblemForm, stages: int | None) -> Iterator[str]:
    """Yield a mistake for more than `MOST_TASKS` tasks, which fill the memory and are most likely a typing error."""
    assert form.tasks is not None
    layers = form.tasks.layers or 1
    repeated = sum(layers) if isinstance(layers, list) else layers * (stages or 0)
    count = (form.microbatches or 0) * repeated * sum(len(tasks) for _, tasks in _task_lists(form))
    if count > MOST_TASKS:
        yield f"tasks: found {count} tasks in all; allowed: up to {MOST_TASKS}, with fewer layers or micro-batches"


def _per_stage(form: ProblemForm) -> Iterator[tuple[str, object]]:
    for key, tasks in _task_lists(form):
        yield from ((f"tasks.{key}[{n}].time", task.time) for n, task in enumerate(tasks))
    if form.tasks:
        yield "tasks.layers", form.tasks.layers


def _looks_up(document: Mapping[str, Any]) -> bool:
    tasks = as_list(at(document, "tasks.forward")) or ()
    return any(isinstance(task, Mapping) and task.get("needs") == "nothing" for task in tasks)


_OWN, _INSTEAD = given("tasks"), "one of them, since tasks say what passes take"
_LOOKUPS = Part(
    "tasks.forward",
    "a task that needs nothing",
    _looks_up,
    in_problem=lambda problem: any(stage.entry(F) for stage in problem.stages),
)

FEATURES.register(
    Feature(
        name="tasks",
        given_by=("streams", "times.transfer.on"),
        mistakes=_mistakes,
        per_stage=_per_stage,
        refused=(
            Refused(SEVERAL_LAYERS, _LOOKUPS, "1", "a lookup is of the whole stage, not of each of its layers"),
            Refused(given("times.fused"), _OWN, _INSTEAD, "a full backward is that of the tasks"),
            Refused(given("times.overlapped"), _OWN, _INSTEAD, "tasks of two passes overlap by themselves"),
            Refused(
                of_value("objective", "period"),
                _LOOKUPS,
                "makespan or span",
                "no part of such a schedule repeats",
            ),
        ),
    )
)
