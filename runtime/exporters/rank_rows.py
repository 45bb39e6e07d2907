"""Text of the ranks' programs where copies have streams of their own.

There is one row a rank, all of it launched by one thread.
"""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.timeline import Timeline
from runtime.lowering.stream_programs import Step, needed_by, stream_programs
from runtime.lowering.stream_transfers import TaskTransfer, proved_streams, sequence_rows, transfer_rows


def runs_on_streams(timeline: Timeline) -> bool:
    """Return True if some device has tasks on several streams, or the schedule has waits between streams."""
    resources = list(stream_programs(timeline))
    return bool(timeline.schedule.waits) or len(resources) > len({resource.device for resource in resources})


def rank_rows(name: str, timeline: Timeline) -> list[str]:
    """Return the program of every rank as text, in the syntax of `runtime.execution.program`.

    A task that waits for a task of another rank receives the tensor which that one yields; `BadInput` if no tensor of
    it is used; its message begins with `name`, that of the format. `Deadlock` if the orders of streams cannot run.
    """
    streams = stream_programs(timeline)
    numbers = {name: number for number, name in enumerate(timeline.problem.streams)}
    steps = {step.task: (numbers[resource.stream], step) for resource, row in streams.items() for step in row}
    return [
        " ".join(
            _transfer(name, timeline, one, device) if isinstance(one, TaskTransfer) else _step(timeline, *steps[one])
            for one in row
        )
        for device, row in enumerate(sequence_rows(timeline, streams))
    ]


def proof_of_streams(name: str, timeline: Timeline) -> str:
    """Return a clause (`free of deadlock: ...`) saying that the programs of all streams end and why.

    `BadInput` with the cycle of waits if they do not end; the message begins with `name`, that of the format.
    `Deadlock` if the orders of streams themselves cannot run.
    """
    streams = stream_programs(timeline)
    return proved_streams(name, timeline, streams, transfer_rows(timeline, streams))


def _step(timeline: Timeline, stream: int, step: Step) -> str:
    device = timeline.problem.device
    here = [before for before in step.waits if device(before.of) == device(step.task.of)]
    return f"{step.task.of}{f'@{stream}' if stream else ''}{''.join(f'!{before.of}' for before in here)}"


def _transfer(name: str, timeline: Timeline, one: TaskTransfer, device: DeviceId) -> str:
    if one.producer not in needed_by(timeline, one.consumer):
        raise BadInput(
            f"{name}: {one.consumer.of} waits for {one.producer.of} of another device and uses nothing of it, which "
            "is not supported; program can express it"
        )
    peer = f"send{one.target}" if one.source == device else f"recv{one.source}"
    return f"{peer}:{one.producer.of}"
