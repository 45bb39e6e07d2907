"""Sends and receives of schedules on several streams, in one order for each device, with a proof that the program ends.

A dependence of a task on a task of another device is a transfer. Those of a device run on a stream of their own, one
after the other, in one order: take any topological sequence of all tasks and transfers, a transfer after the task that
yields its tensor and before the one that uses it; the timeline's times give one. Both ends of a transfer take their
place from that one sequence. The first event in it that has not happened is next on every stream that takes part, so
all of it happens, even if both ends block until the other is there. The written program is then checked without that
argument: it is sorted topologically, or the cycle is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from pipesched.errors import BadInput, Deadlock
from pipesched.problem.formatting import counted
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Task, may_send_tensor
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.timeline import Timeline
from runtime.lowering.stream_programs import Step
from runtime.lowering.topological_order import in_order


class TaskTransfer(NamedTuple):
    """A transfer of the result of the task `producer` on device `source` to the task `consumer` on device `target`."""

    producer: Task
    consumer: Task
    source: DeviceId
    target: DeviceId


# The transfers of each device, sent and received, in the order in which it runs them.
TransferRows: TypeAlias = tuple[tuple[TaskTransfer, ...], ...]
# The steps of every stream of every device, in order, as `stream_programs` returns them.
Streams: TypeAlias = Mapping[Resource, Sequence[Step]]


def transfer_rows(timeline: Timeline, streams: Streams) -> TransferRows:
    """Return the transfers of every device, both sent and received, in order; equal timelines give equal ones.

    Raises `Deadlock` if waits form a cycle.
    """
    return tuple(tuple(one for one in row if isinstance(one, TaskTransfer)) for row in sequence_rows(timeline, streams))


def sequence_rows(timeline: Timeline, streams: Streams) -> tuple[tuple[Task | TaskTransfer, ...], ...]:
    """Return for each device its tasks and the transfers that it sends or receives, as ordered in one global sequence.

    A device that launches them in this order launches the tasks of every stream in that stream's order, each after its
    predecessors on the device. So one thread can launch them all. Raises `Deadlock` if waits form a cycle.
    """
    problem = timeline.problem
    transfers = [
        TaskTransfer(before, step.task, problem.device(before.of), device)
        for where, steps in streams.items()
        for step in steps
        for device in (_device(timeline, where, step.task),)
        for before in step.waits
        if problem.device(before.of) != device and may_send_tensor(before.of, step.task.of)
    ]
    tasks = _tasks(streams)
    waits = _waits(streams, tasks, transfers)
    ends = {
        task: timeline.starts[task] + part.ticks for p in timeline.schedule.passes() for task, part in problem.tasks(p)
    }

    def rank(number: int) -> tuple[int, ...]:
        if number < len(tasks):
            return timeline.starts[tasks[number]], 1
        return ends[transfers[number - len(tasks)].producer], 0

    rows: list[list[Task | TaskTransfer]] = [[] for _ in range(problem.devices)]
    for number in in_order(waits, rank, str):
        if number < len(tasks):
            for device in problem.devices_of(tasks[number]):
                rows[device].append(tasks[number])
        else:
            one = transfers[number - len(tasks)]
            rows[one.source].append(one)
            rows[one.target].append(one)
    return tuple(map(tuple, rows))


def _tasks(streams: Streams) -> list[Task]:
    """Return the tasks of all streams, each once."""
    return list(dict.fromkeys(step.task for steps in streams.values() for step in steps))


def _device(timeline: Timeline, where: Resource, task: Task) -> DeviceId:
    """Return the device on which a task runs on the stream `where`: for its first stream the device of its pass.

    Several devices may share that stream. For a further stream it is the device of that stream.
    """
    problem = timeline.problem
    first = problem.network.tasks[task.of.kind, task.of.stage][task.part].resources[0]
    return problem.device(task.of) if where == first else where.device


def _waits(streams: Streams, tasks: Sequence[Task], transfers: Sequence[TaskTransfer]) -> list[list[int]]:
    """Return for each task, then for each transfer, the numbers of its predecessors in that list.

    A task follows the previous one of its stream and all that it depends on; across devices that is a transfer.
    """
    number_of = {task: number for number, task in enumerate(tasks)}
    waits: list[list[int]] = [[] for _ in (*tasks, *transfers)]
    far = {(transfer.producer, transfer.consumer): len(tasks) + number for number, transfer in enumerate(transfers)}
    for steps in streams.values():
        for place, step in enumerate(steps):
            mine = waits[number_of[step.task]]
            mine += [number_of[steps[place - 1].task]] if place else []
            mine += [far.get((before, step.task), number_of[before]) for before in step.waits]
    for number, transfer in enumerate(transfers):
        waits[len(tasks) + number].append(number_of[transfer.producer])
    return waits


def proved_streams(name: str, timeline: Timeline, streams: Streams, rows: TransferRows) -> str:
    """Return one sentence saying that the program ends under blocking sends, after a topological sort that shows it.

    Raises `BadInput`, whose text begins with `name`, if a transfer is not in the rows of exactly its two devices, or
    with the cycle of waits if the program does not end.
    """
    tasks = _tasks(streams)
    transfers = list(dict.fromkeys(one for row in rows for one in row))
    for one in transfers:
        if [device for device, row in enumerate(rows) if one in row] != sorted({one.source, one.target}):
            raise BadInput(f"{name}: {_text(timeline, one)} is not on the two devices that it is between")
    waits = _waits(streams, tasks, transfers)
    number = {one: len(tasks) + at for at, one in enumerate(transfers)}
    for row in rows:
        for before, after in pairwise(row):
            waits[number[after]].append(number[before])

    def text(at: int) -> str:
        return timeline.problem.task_text(tasks[at]) if at < len(tasks) else _text(timeline, transfers[at - len(tasks)])

    try:
        in_order(waits, lambda _: (), text)
    except Deadlock as error:
        raise BadInput(f"{name}: cannot be run to its end: {error}") from None
    events = counted(len(tasks) + len(transfers), "event")
    return f"free of deadlock: {events} in one order under rendezvous sends, one transfer at a time on each device"


def _text(timeline: Timeline, one: TaskTransfer) -> str:
    before, after = map(timeline.problem.task_text, one[:2])
    return f"transfer {before}->{after} (device {one.source} to {one.target})"
