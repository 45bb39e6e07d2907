"""Lowering of a timeline to a program for each device.

It has its computes, and each tensor it sends and receives, in one order. Proof that a lowered program cannot deadlock.
Put everything that happens, every compute and every transfer between two devices, into one sequence in which a transfer
is after the pass that yields its tensor and before the pass that uses it, and the computes of a device are in its
order. A device's program is that sequence without events elsewhere; a transfer remains in two programs, as SEND in one
and RECV in the other. Let every device run its program, both ends of a transfer blocking until the other end is there,
and suppose that everything halts. Take the first event of the sequence that has not happened: all before it has, so it
is next in the program of every device that takes part in it, and its inputs are there; it happens, a contradiction. So
the programs run to their end under rendezvous sends, hence under any runtime that waits for less. And since both ends
read one sequence, two devices see the transfers between them, in both directions, in the same order.

Such a sequence exists for every schedule that can run at all. Of the many, `Receives` chooses by the timeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import TypeAlias

from pipesched.deadline import SHORT, asking
from pipesched.problem.passes import F, Pass, may_send_tensor
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MicrobatchId, Ticks
from pipesched.schedule.timeline import Timeline
from runtime.lowering.topological_order import in_order


class Tensor(StrEnum):
    """Tensors transferred.

    `ACTIVATION` is the output of a stage in forwards, `GRADIENT` the gradient of its input in backwards.
    """

    ACTIVATION = "activation"
    GRADIENT = "gradient"


class Receives(StrEnum):
    """The position of a receive among its device's computes.

    `EARLY`: before the compute that runs while the tensor leaves its sender, so that the transfer overlaps that
    compute. `LATE`: after every compute that precedes the one that uses the tensor, for runtimes whose receive blocks,
    or keeps one tensor at a time.
    """

    # Before the compute that runs while the tensor leaves: for runtimes whose receive is posted and waits for nothing,
    # so that the transfer overlaps that compute.
    EARLY = "early"
    # After every compute that does not use it: for runtimes whose receive blocks, or keeps one tensor at a time.
    LATE = "late"


@dataclass(frozen=True)
class Transfer:
    """One tensor, of the pass `producer`, sent from device `source` to device `target` for the pass `consumer`."""

    producer: Pass
    consumer: Pass
    source: DeviceId
    target: DeviceId

    @property
    def tensor(self) -> Tensor:
        return Tensor.ACTIVATION if self.producer.kind is F else Tensor.GRADIENT

    @property
    def microbatch(self) -> MicrobatchId:
        return self.producer.microbatch

    def __str__(self) -> str:
        return f"{self.producer}->{self.consumer}"


@dataclass(frozen=True)
class Compute:
    """One pass, or the two passes of an overlapped block, which start and end together."""

    passes: tuple[Pass, ...]

    def __str__(self) -> str:
        return "&".join(map(str, self.passes))


@dataclass(frozen=True)
class Send:
    """The sending end of a transfer: `transfer.target` is the peer."""

    transfer: Transfer

    def __str__(self) -> str:
        return f"SEND {self.transfer} to device {self.transfer.target}"


@dataclass(frozen=True)
class Receive:
    """The receiving end of a transfer: `transfer.source` is the peer."""

    transfer: Transfer

    def __str__(self) -> str:
        return f"RECV {self.transfer} from device {self.transfer.source}"


Instruction: TypeAlias = Compute | Send | Receive


@dataclass(frozen=True)
class Program:
    """The instructions of all devices: `rows[d]` is what device d executes, in order.

    A tensor that stays on its device needs no instruction.
    """

    problem: Problem
    rows: tuple[tuple[Instruction, ...], ...]

    def transfers(self) -> Iterator[Transfer]:
        """Yield every transfer once, device by device, in the order of sending."""
        for row in self.rows:
            yield from (step.transfer for step in asking(row, SHORT) if isinstance(step, Send))


_Event: TypeAlias = Compute | Transfer


def lower(timeline: Timeline, receives: Receives = Receives.EARLY) -> Program:
    """Return the program of every device; the same timeline always gives the same program.

    A pair of passes that share a slot without being one block is two computes, one after the other. `Deadlock` if
    passes of several tasks interleave so that no order of whole passes can follow.
    """
    problem = timeline.problem
    rows: list[list[Instruction]] = [[] for _ in range(problem.devices)]
    for event in asking(_sequence(timeline, receives), SHORT):
        if isinstance(event, Transfer):
            rows[event.source].append(Send(event))
            rows[event.target].append(Receive(event))
        else:
            rows[problem.device(event.passes[0])].append(event)
    return Program(problem, tuple(map(tuple, rows)))


def transfers_of(timeline: Timeline) -> Iterator[Transfer]:
    """Yield every tensor that is sent to another device, once for each pass that uses it there.

    They are in the order of these passes: by receiving device, and on each device as in its order.
    """
    problem, schedule = timeline.problem, timeline.schedule
    for p in asking(schedule.passes(), SHORT):
        for before, _ in problem.network.predecessors(p, schedule.pass_set):
            source, target = problem.device(before), problem.device(p)
            if source != target and may_send_tensor(before, p):
                yield Transfer(before, p, source, target)


def computes_of(timeline: Timeline, device: DeviceId) -> Iterator[Compute]:
    """Yield the computes of a device in order; a block is one compute, any other pair of passes two.

    Where transfers are tasks of passes, the order is that in which passes compute.
    """
    if timeline.problem.network.occupies_several:
        passes = sorted(timeline.schedule.passes_on(device), key=partial(computes_at, timeline))
        yield from (Compute((p,)) for p in passes)
        return
    for slot in asking(timeline.schedule.orders[device], SHORT):
        if timeline.in_block(slot[0]):
            yield Compute(slot)
        else:
            yield from (Compute((p,)) for p in slot)


def computes_at(timeline: Timeline, p: Pass) -> Ticks:
    """Return the tick at which a pass begins to compute: the start of its first task that receives no tensor."""
    return next(timeline.starts[task] for task, part in timeline.problem.tasks(p) if not part.receives)


def _leaves_at(timeline: Timeline, transfer: Transfer) -> Ticks:
    """Return the tick at which a tensor leaves: the end of its pass, or the start of the task that transfers it."""
    tasks = timeline.problem.tasks(transfer.consumer)
    found = (timeline.starts[task] for task, part in tasks if part.receives)
    return next(found, timeline.end(transfer.producer))


def _sequence(timeline: Timeline, receives: Receives) -> list[_Event]:
    """Return all events in one topological order; the timeline selects among possible ones.

    Events are ranked by time, at one time transfers first. A transfer ranks by the tick at which its tensor leaves. A
    compute ranks by its end if receives are to be early, so that one that still runs when a tensor leaves is placed
    after that tensor's transfer; and by its start if they are late. Where transfers are tasks of passes, a compute
    ranks by the tick at which it begins to compute in both cases.
    """
    problem = timeline.problem
    rows = [list(computes_of(timeline, device)) for device in range(problem.devices)]
    computes = [compute for row in rows for compute in row]
    events: list[_Event] = [*computes, *transfers_of(timeline)]
    number_of = {p: number for number, compute in enumerate(asking(computes, SHORT)) for p in compute.passes}
    waits: list[list[int]] = [[] for _ in events]
    before: dict[int, int] = {
        number_of[one.passes[0]]: number_of[other.passes[0]] for row in asking(rows) for other, one in pairwise(row)
    }
    for number, earlier in asking(before.items(), SHORT):
        waits[number].append(earlier)
    for number, compute in asking(enumerate(computes), SHORT):
        for p in compute.passes:
            needs = (before for before, _ in problem.network.predecessors(p, number_of))
            waits[number] += [number_of[q] for q in needs if problem.device(q) == problem.device(p)]
    for number, event in asking(enumerate(events), SHORT):
        if isinstance(event, Transfer):
            user = number_of[event.consumer]
            waits[user].append(number)
            waits[number].append(number_of[event.producer])
            if receives is Receives.LATE and user in before:
                waits[number].append(before[user])
    when = timeline.end if receives is Receives.EARLY else timeline.start
    if problem.network.occupies_several:
        when = partial(computes_at, timeline)

    def rank(number: int) -> tuple[int, ...]:
        event = events[number]
        if isinstance(event, Transfer):
            return _leaves_at(timeline, event), 0
        return when(event.passes[0]), 1

    return [events[number] for number in in_order(waits, rank, lambda number: str(events[number]))]
