"""Matching of transfers: both ends exist, on the right devices, and in the same order.

Runtimes do not report an order that differs between the ends: gloo then silently hands over the wrong tensor, and NCCL,
which runs the transfers between two devices one after the other, waits for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest

from pipesched.deadline import SHORT, asking
from pipesched.problem.passes import Pass, may_send_tensor
from pipesched.problem.quantities import DeviceId
from runtime.lowering.programs import Compute, Program, Receive, Send, Transfer

_Pair = tuple[int, int]


def pair_mistakes(program: Program) -> list[str]:
    """Return sentences on mistakes in the sends and receives of all devices; empty if they are right.

    Right are transfers with both ends on their two devices, of exactly the tensors needed, in the same order at both
    ends. The last two are looked at only if the first holds, and of the order between two devices only the first
    difference is reported.
    """
    ends = list(unmatched(program))
    return ends or [*_complete(program), *_orders(program)]


def unmatched(program: Program) -> Iterator[str]:
    """Yield sentences on ends of transfers that are unmatched, duplicated, on a wrong device, or both on one device."""
    sent, received = _ends(program, Send), _ends(program, Receive)
    for transfer in asking(sorted(set(sent) | set(received), key=str), SHORT):
        if transfer.source == transfer.target:
            yield f"{transfer} is a transfer from device {transfer.source} to itself; a hand-over there needs none"
        for word, devices_of, device in (("SEND", sent, transfer.source), ("RECV", received, transfer.target)):
            if devices_of[transfer] != [device]:
                found = ", ".join(f"device {other}" for other in devices_of[transfer]) or "no device"
                yield f"{word} {transfer} is on {found}; allowed: once on device {device}"


def _ends(program: Program, end: type[Send] | type[Receive]) -> dict[Transfer, list[DeviceId]]:
    """Return for each transfer the devices on which this end of it, its send or its receive, stands in the program.

    Transfers that have only the other end are included, with an empty list.
    """
    both = (step.transfer for row in program.rows for step in asking(row, SHORT) if not isinstance(step, Compute))
    devices_of: dict[Transfer, list[int]] = {transfer: [] for transfer in both}
    for device, row in enumerate(program.rows):
        for step in asking(row, SHORT):
            if isinstance(step, end):
                devices_of[step.transfer].append(device)
    return devices_of


def _complete(program: Program) -> Iterator[str]:
    """Yield sentences on tensors transferred but not needed by another device, or needed but not transferred."""
    problem = program.problem
    passes = [
        p for row in program.rows for step in asking(row, SHORT) if isinstance(step, Compute) for p in step.passes
    ]
    pass_set = frozenset(passes)
    needed: Counter[tuple[Pass, Pass]] = Counter()
    for p in asking(passes, SHORT):
        for before, _ in problem.network.predecessors(p, pass_set):
            if problem.device(before) != problem.device(p) and may_send_tensor(before, p):
                needed[before, p] += 1
    found = Counter((transfer.producer, transfer.consumer) for transfer in program.transfers())
    for producer, consumer in needed - found:
        yield f"{consumer} needs what {producer} yields on another device, and no transfer brings it"
    for producer, consumer in found - needed:
        yield f"{producer}->{consumer} is sent, and no pass of the program needs it"


def _orders(program: Program) -> Iterator[str]:
    """Yield sentences on pairs of devices whose transfers, in both directions, differ in order at the two ends."""
    seen: dict[_Pair, list[Transfer]] = {}
    for device, row in enumerate(program.rows):
        for step in asking(row, SHORT):
            if not isinstance(step, Compute):
                peer = step.transfer.target if isinstance(step, Send) else step.transfer.source
                seen.setdefault((device, peer), []).append(step.transfer)
    for device, peer in sorted(pair for pair in seen if pair[0] < pair[1]):
        here, there = seen[device, peer], seen.get((peer, device), [])
        for place, (one, other) in enumerate(zip_longest(here, there)):
            if one != other:
                yield (
                    f"transfer {place} between devices {device} and {peer} is {one} on device {device} and {other} on "
                    f"device {peer}; both ends must see the same order"
                )
                break
