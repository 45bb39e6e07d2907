"""Head and tail: a device's busy interval plus the time to reach it and the time back from its last gradient.

Both ways are part of the span of any device that the micro-batches pass before, so one device's work bounds another's
span. For the makespan the ways are from time 0, and back to the first stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipesched.problem.attainable_spans import largest_denominator, least_from
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.busy_interval import BusyInterval, BusyIntervals
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.critical_paths import Paths, chains_on, gate_of


class Ways(NamedTuple):
    """Least ticks from the beginning of a device to another, and back by the other's chains.

    `whose` is the device that begins and ends; None for time itself.
    """

    whose: int | None
    there: int
    back: list[int]


def head_and_tail(problem: Problem, objective: Objective) -> list[Certificate]:
    """For each device the strongest of all ways to it and back, around all that keeps it busy."""
    paths = Paths(problem)
    found = []
    for device in range(problem.devices):
        chains = chains_on(problem, device)
        if not chains:
            continue
        intervals = BusyIntervals(problem, paths, device, chains)
        always, by_chain = (
            intervals.to_last_gradient(),
            [intervals.to_gradient_of_last_forward(chain) for chain in chains],
        )
        certificates = []
        for way in ways(problem, paths, objective, [chain[0] for chain in chains]):
            certificates.append(_certificate(problem, device, way, always, min(way.back)))
            # Any chain's forward may be the last.
            shortest = min(zip(by_chain, way.back, strict=True), key=lambda pair: pair[0].ticks + pair[1])
            certificates.append(_certificate(problem, device, way, *shortest))
        found += sorted(certificates, key=lambda certificate: -certificate.value)[:1]
    return found


def _certificate(problem: Problem, device: int, way: Ways, busy: BusyInterval, back: int) -> Certificate:
    value = least_from(way.there + busy.ticks + back, largest_denominator(problem))
    if way.whose is None:
        since, until = "", "back to the first stage and the backward there"
    else:
        since, until = f" after device {way.whose} began", f"back to device {way.whose} and the backward there"
    text = (
        f"Device {device} cannot begin before {amount(problem, way.there)}{since}. {busy.text} From there the way "
        f"{until} take {amount(problem, back)}: {amount(problem, value)}."
    )
    return Certificate("head and tail", value, text, device)


def ways(problem: Problem, paths: Paths, objective: Objective, first: Sequence[int]) -> Iterator[Ways]:
    """All ways to and from a device on which the chains walk these stages first."""
    if objective is Objective.MAKESPAN:
        yield Ways(None, min(paths.head[s] for s in first), [paths.tail(s) for s in first])
        return
    for whose in range(problem.devices):
        # The other device is sure to begin before, and to end behind, if every chain passes it first.
        gates = [gate for s in first for gate in [gate_of(problem, whose, s)] if gate is not None]
        if len(gates) == len(first):
            there = min(paths.head[s] - paths.head[gate] for s, gate in zip(first, gates, strict=True))
            yield Ways(whose, there, [paths.way_back(s, gate) for s, gate in zip(first, gates, strict=True)])


BOUNDS.register(Bound("head and tail", head_and_tail, rank=1))
