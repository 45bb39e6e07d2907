"""Head and tail: a device's busy interval, plus the time to reach it and the time back from its last gradient.

Micro-batches of several chains whose stages form one queue pass a device in order. Then only the first of a queue can
be first on the device, only the last one's forward or gradient can be its last pass, and the first backward waits for
the first micro-batch's round trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipesched.problem.attainable_spans import largest_denominator, least_from
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import AroundDevice
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.critical_paths import Paths, visited
from solver.bounds.analytic.heads_and_tails import heads_and_tails
from solver.bounds.analytic.idle_time.busy_interval import BusyInterval, BusyIntervals
from solver.bounds.analytic.idle_time.idle_gaps import head_gap


class _QueueEnds(NamedTuple):
    """Chains of a device whose micro-batches may be the first there (`firsts`), and the last there (`lasts`).

    Both are indices in the list of the chains that the device has stages of.
    """

    firsts: Sequence[int]
    lasts: Sequence[int]


class _BoundedInterval(NamedTuple):
    """A busy interval of a device, with the least ticks before it (`head`) and after it (`back`).

    `owner` is the device whose span is bounded, None for the makespan. With `to_last_forward` the interval ends at the
    gradient of the micro-batch whose forward is the device's last, else at the device's last gradient.
    """

    owner: DeviceId | None
    to_last_forward: bool
    head: Ticks
    busy: BusyInterval
    back: Ticks


def head_and_tail(problem: Problem, objective: Objective) -> list[Certificate]:
    """Return for each device the strongest certificate of the form head + busy interval + tail.

    It is the strongest over two choices: the device whose span is bounded, and the end of the busy interval (the last
    gradient, or that of the last forward's micro-batch). Certificates are in ascending order of devices; devices
    without passes have none. Where micro-batches of several chains form queues the kind is "head and tail in order",
    else "head and tail". The problem must be plain.
    """
    paths, found = Paths(problem), []
    for device, chains in visited(paths.view):
        queue = _queue_ends(problem, chains)
        intervals = BusyIntervals(problem, paths, device, chains)
        firsts, spare = [chains[n] for n in queue.firsts], int(intervals.apart)
        # The first backward is of one of these.
        trip = head_gap(paths, device, firsts, spare).length
        intervals.idle = head_gap(paths, device, chains, spare)._replace(length=trip).idle
        always = intervals.to_last_gradient()
        by_chain = [intervals.to_gradient_of_last_forward(chains[n]) for n in queue.lasts]
        certificates = []
        for ends in heads_and_tails(paths, objective, [chain[0] for chain in chains]):
            head, tails = min(ends.heads[n] for n in queue.firsts), [ends.tails[n] for n in queue.lasts]
            # Any of these chains' forwards may be the last.
            shortest = min(zip(by_chain, tails, strict=True), key=lambda pair: pair[0].ticks + pair[1])
            for last_forward, (busy, back) in ((False, (always, min(tails))), (True, shortest)):
                around = _BoundedInterval(ends.owner, last_forward, head, busy, back)
                certificates.append(_certificate(problem, device, around))
        found += sorted(certificates, key=lambda certificate: -certificate.value_ticks)[:1]
    return found


def _queue_ends(problem: Problem, chains: Sequence[Sequence[StageId]]) -> _QueueEnds:
    """Return two lists of indices in `chains`: those with micro-batches first in their queue, and last in it.

    Stages of one queue run their forwards, and their backwards, in the order of micro-batches; without queues any chain
    may be first and last. `chains` are the stages of one device by chain; the queue of a chain is that of its first
    stage here. Either all chains of a queue are on the device, or none.
    """
    firsts, lasts = dict[int, int](), dict[int, int]()
    for n in sorted(range(len(chains)), key=lambda n: problem.microbatches_of[chains[n][0]].start):
        queue = problem.queue_of[chains[n][0]]
        firsts.setdefault(queue, n)
        lasts[queue] = n
    return _QueueEnds([*firsts.values()], [*lasts.values()])


def _certificate(problem: Problem, device: DeviceId, around: _BoundedInterval) -> Certificate:
    owner, to_last_forward, head, busy, back = around
    in_order = bool(problem.walks.queues)
    value = least_from(head + busy.ticks + back, largest_denominator(problem))
    if owner is None:
        since, until = "", "back to the first stage and the backward there"
    else:
        since, until = f" after device {owner} began", f"back to device {owner} and the backward there"
    if head:
        begin = f"Device {device} cannot begin before {amount(problem, head)}{since}. {busy.text}"
    else:
        begin = f"Device {device}: {busy.text[0].lower()}{busy.text[1:]}"
    ending = f"From there the way {until} take {amount(problem, back)}" if back else "Together"
    kept = "Micro-batches keep their order, so the first and the last of a line are known. " if in_order else ""
    evidence = AroundDevice(device, owner, to_last_forward)
    name = "head and tail in order" if in_order else "head and tail"
    return Certificate(name, value, f"{kept}{begin} {ending}: {amount(problem, value)}.", device, evidence)


BOUNDS.register(Bound("head and tail", head_and_tail, rank=1, reads_memory=True))
