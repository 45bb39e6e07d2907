"""Checks of a problem file's streams and tasks: names that refer to each other, and keys that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipesched.errors import did_you_mean
from pipesched.files.fields.link_times import stream_of
from pipesched.files.fields.section import WrongPaths
from pipesched.files.problems.schema import PLAIN_TIMES, ChainTask, ProblemFile, WeightTask
from pipesched.files.schema_errors import shown
from pipesched.problem.features.device_resources import SENDING
from pipesched.problem.stage import COMPUTE

# Tasks of one iteration: a schedule of so many takes some gigabytes to time and judge.
MOST_TASKS = 2_000_000


def task_mistakes(form: ProblemFile, stages: int | None, wrong: WrongPaths) -> Iterator[str]:
    """Yield a line for each broken rule of streams and tasks; nothing for sections that have wrong values.

    `stages` is the number of stages, None if not known.
    """
    if any(path.startswith(("streams", "tasks", "times.transfer")) for path in wrong):
        return
    streams = form.streams or [COMPUTE]
    for at, name in enumerate(streams):
        if name in streams[:at]:
            yield f"streams[{at}]: found {name!r} twice; allowed: each name once"
    sending = stream_of(form.times.transfer) if form.times else None
    if sending is not None:
        yield from _unknown("times.transfer.on", sending, streams)
    if form.tasks is None:
        return
    for key in PLAIN_TIMES:
        if key not in ("fused", "overlapped") and getattr(form.times, key, None) is not None:
            yield f"times.{key}: found with tasks; allowed: one of them, since tasks say what passes take"
    for key, tasks in task_lists(form):
        yield from _list(f"tasks.{key}", tasks, streams)
    names = [task.name for task in form.tasks.backward or () if task.name]
    for at, task in enumerate(form.tasks.weight or ()):
        if task.after is not None and names:
            yield from _unknown(f"tasks.weight[{at}].after", task.after, names)
    yield from _lookups(form)
    yield from _count(form, stages)


def _lookups(form: ProblemFile) -> Iterator[str]:
    """Yield mistakes of tasks that need no input.

    Such tasks must be first in a forward of one layer, before a task that needs the input.
    """
    assert form.tasks is not None
    for at, task in enumerate(form.tasks.backward or ()):
        if task.needs == "nothing":
            yield f"tasks.backward[{at}].needs: found nothing; allowed: in tasks.forward"
    given = [task.needs == "nothing" for task in form.tasks.forward or ()]
    if not any(given):
        return
    if all(given):
        yield "tasks.forward: found no task that needs its input; allowed: the last one does"
    elif sorted(given, reverse=True) != given:
        yield "tasks.forward: found a task that needs nothing behind one that needs its input; allowed: before it"


def task_lists(form: ProblemFile) -> Iterator[tuple[str, Sequence[ChainTask | WeightTask]]]:
    """Yield (key, tasks) for each list of tasks that the file gives: forward, backward and weight."""
    if form.tasks is not None:
        lists: dict[str, Sequence[ChainTask | WeightTask] | None]
        lists = {"forward": form.tasks.forward, "backward": form.tasks.backward, "weight": form.tasks.weight}
        yield from ((key, tasks) for key, tasks in lists.items() if tasks is not None)


def _list(path: str, tasks: Sequence[ChainTask | WeightTask], streams: list[str]) -> Iterator[str]:
    if not tasks:
        yield f"{path}: found []; allowed: at least one task, with name and time"
    for at, task in enumerate(tasks):
        here = f"{path}[{at}]"
        yield from task.missing(here)
        if task.name == SENDING:
            yield f"{here}.name: found {SENDING!r}; allowed: any other name, since the task that sends on is called so"
        elif task.name is not None and task.name in [one.name for one in tasks[:at]]:
            yield f"{here}.name: found {task.name!r} twice; allowed: each name once"
        if task.on is not None:
            yield from _unknown(f"{here}.on", task.on, streams)


def _unknown(path: str, name: str, known: list[str]) -> Iterator[str]:
    if name not in known:
        yield f"{path}: found {shown(name)}; allowed: {', '.join(known)}{did_you_mean(name, known)}"


def _count(form: ProblemFile, stages: int | None) -> Iterator[str]:
    """Yield a mistake for more than `MOST_TASKS` tasks, which fill the memory and are most likely a typing error."""
    assert form.tasks is not None
    layers = form.tasks.layers or 1
    repeated = sum(layers) if isinstance(layers, list) else layers * (stages or 0)
    count = (form.microbatches or 0) * repeated * sum(len(tasks) for _, tasks in task_lists(form))
    if count > MOST_TASKS:
        yield f"tasks: found {count} tasks in all; allowed: up to {MOST_TASKS}, with fewer layers or micro-batches"
