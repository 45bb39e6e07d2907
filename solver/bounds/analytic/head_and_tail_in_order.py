"""Head and tail where micro-batches keep their order: the first one's way to a device, and the last one's way back.

Micro-batches of several chains whose stages are one queue pass a device in line. So no other than the first of a queue
begins there, no other's forward or gradient is its last, and the first backward waits for the first one's round trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipesched.problem.attainable_spans import largest_denominator, least_from
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import AroundDevice
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.critical_paths import Paths, visited
from solver.bounds.analytic.heads_and_tails import HeadsAndTails, heads_and_tails
from solver.bounds.analytic.idle_time.busy_interval import BusyInterval, BusyIntervals
from solver.bounds.analytic.idle_time.idle_gaps import Gap, head_gap

_NAME = "head and tail in order"


class _Line(NamedTuple):
    """Of the chains that visit a device, by their place, those that may come first and those that may come last."""

    firsts: list[int]
    lasts: list[int]


def head_and_tail_in_order(problem: Problem, objective: Objective) -> list[Certificate]:
    """For each device the strongest of all ways to it and back; nothing where micro-batches may pass each other."""
    if not problem.queues:
        return []
    paths, found = Paths(problem), []
    for device, chains in visited(problem):
        line = _line(problem, chains)
        intervals = BusyIntervals(problem, paths, device, chains)
        # `BusyIntervals` counts the shortest wait of all chains.
        spare = int(intervals.apart)
        intervals.idle = _first_gap(problem, paths, device, chains, line, spare).idle
        certificates = []
        for ends in heads_and_tails(problem, paths, objective, [chain[0] for chain in chains]):
            to_last = intervals.to_last_gradient(), min(ends.tails[n] for n in line.lasts)
            after = ((intervals.to_gradient_of_last_forward(chains[n]), ends.tails[n]) for n in line.lasts)
            shortest = min(after, key=lambda pair: pair[0].ticks + pair[1])
            head = min(ends.heads[n] for n in line.firsts)
            for to_last_forward, (busy, back) in ((False, to_last), (True, shortest)):
                certificates.append(_certificate(problem, device, ends, to_last_forward, head, busy, back))
        found += sorted(certificates, key=lambda certificate: -certificate.value)[:1]
    return found


def _line(problem: Problem, chains: Sequence[Sequence[int]]) -> _Line:
    """The chains whose micro-batches are the first of their queue, and the last. One queue has all its chains here."""
    firsts, lasts = dict[int, int](), dict[int, int]()
    for n in sorted(range(len(chains)), key=lambda n: problem.microbatches_of[chains[n][0]].start):
        queue = problem.queues[chains[n][0]]
        firsts.setdefault(queue, n)
        lasts[queue] = n
    return _Line([*firsts.values()], [*lasts.values()])


def _first_gap(problem: Problem, paths: Paths, device: int, chains: list[list[int]], line: _Line, spare: int) -> Gap:
    """The wait for the first backward, which is of a micro-batch that is the first of its queue."""
    lengths = []
    for chain in (chains[n] for n in line.firsts):
        way = sum(paths.forward[s] for s in chain) + paths.away(chain)[0]
        lengths.append(way + paths.round_trip[chain[-1]])
    return head_gap(problem, paths, device, chains, spare)._replace(length=min(lengths))


def _certificate(
    problem: Problem, device: int, ends: HeadsAndTails, to_last_forward: bool, head: int, busy: BusyInterval, back: int
) -> Certificate:
    value = least_from(head + busy.ticks + back, largest_denominator(problem))
    owner = ends.owner
    since, until = ("", "the first stage") if owner is None else (f" after device {owner} began", f"device {owner}")
    text = (
        f"Micro-batches keep their order: the first reaches device {device} {amount(problem, head)}{since} or later. "
        f"{busy.text} From there the last one's way back to {until}, and the backward there, take "
        f"{amount(problem, back)}: {amount(problem, value)}."
    )
    return Certificate(_NAME, value, text, device, AroundDevice(device, owner, to_last_forward))


BOUNDS.register(Bound(_NAME, head_and_tail_in_order, rank=1))
