"""A model of how PyTorch adds sends and receives to a compute-only CSV, to prove that the result ends.

torch 2.13's `_add_send_recv` lets the ranks take turns: a rank that has what its next cell needs executes that cell and
writes, at that moment, the sends of its tensors into its own row and the receives into the rows of the ranks that use
them. Both ends of a transfer are thus at one moment of one sequence, so the rows run to their end (`deadlock.py`). Here
every row has passes only: the cells that gather and reduce parameters, which torch inserts before, take turns of their
own and shift the moments, and the argument does not depend on them.
"""

from __future__ import annotations

from pipesched.deadline import asking
from pipesched.problem.passes import Pass
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.timeline import Timeline
from runtime.lowering.programs import (
    Compute,
    Instruction,
    Program,
    Receive,
    Send,
    Transfer,
    computes_of,
    lower,
    transfers_of,
)


def torch_lowered(timeline: Timeline) -> Program:
    """Return the program that PyTorch makes by adding sends and receives to the order of passes.

    Raises `Deadlock`, with the cycle of waits, if the schedule cannot run.
    """
    lower(timeline)  # raises Deadlock, and there is no other reason for the turns to come to a halt
    problem = timeline.problem
    waiting = [list(computes_of(timeline, device)) for device in range(problem.devices)]
    rows: list[list[Instruction]] = [[] for _ in waiting]
    leaving: dict[Pass, list[Transfer]] = {}
    for transfer in transfers_of(timeline):
        leaving.setdefault(transfer.producer, []).append(transfer)
    there: set[tuple[Pass, int]] = set()  # which device holds what a pass yielded
    while any(waiting):
        for device, queue in asking(enumerate(waiting)):
            if not queue or not _ready(timeline, queue[0], device, there):
                continue
            compute = queue.pop(0)
            rows[device].append(compute)
            there |= {(p, device) for p in compute.passes}
            for transfer in (transfer for p in compute.passes for transfer in leaving.get(p, ())):
                rows[transfer.source].append(Send(transfer))
                rows[transfer.target].append(Receive(transfer))
                there.add((transfer.producer, transfer.target))
    return Program(problem, tuple(map(tuple, rows)))


def _ready(timeline: Timeline, compute: Compute, device: DeviceId, there: set[tuple[Pass, DeviceId]]) -> bool:
    """Return True if the device has the inputs of every pass of a cell.

    `there` has each tensor's (pass, device) so far.
    """
    network, pass_set = timeline.problem.network, timeline.schedule.pass_set
    needed = (before for p in compute.passes for before, _ in network.predecessors(p, pass_set))
    return all((before, device) in there for before in needed)
