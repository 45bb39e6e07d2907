"""Head and tail: a device's busy interval plus the time to reach it and the time back from its last gradient."""

from __future__ import annotations

from pipesched.problem.attainable_spans import largest_denominator, least_from
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import AroundDevice
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.critical_paths import Paths, visited
from solver.bounds.analytic.heads_and_tails import HeadsAndTails, heads_and_tails
from solver.bounds.analytic.idle_time.busy_interval import BusyInterval, BusyIntervals


def head_and_tail(problem: Problem, objective: Objective) -> list[Certificate]:
    """For each device the strongest of all ways to it and back, around all that keeps it busy."""
    paths = Paths(problem)
    found = []
    for device, chains in visited(problem):
        intervals = BusyIntervals(problem, paths, device, chains)
        always, by_chain = (
            intervals.to_last_gradient(),
            [intervals.to_gradient_of_last_forward(chain) for chain in chains],
        )
        certificates = []
        for ends in heads_and_tails(problem, paths, objective, [chain[0] for chain in chains]):
            certificates.append(_certificate(problem, device, ends, False, always, min(ends.tails)))
            # Any chain's forward may be the last.
            shortest = min(zip(by_chain, ends.tails, strict=True), key=lambda pair: pair[0].ticks + pair[1])
            certificates.append(_certificate(problem, device, ends, True, *shortest))
        found += sorted(certificates, key=lambda certificate: -certificate.value)[:1]
    return found


def _certificate(
    problem: Problem, device: int, ends: HeadsAndTails, to_last_forward: bool, busy: BusyInterval, back: int
) -> Certificate:
    value = least_from(ends.least_head + busy.ticks + back, largest_denominator(problem))
    if ends.owner is None:
        since, until = "", "back to the first stage and the backward there"
    else:
        since, until = f" after device {ends.owner} began", f"back to device {ends.owner} and the backward there"
    if ends.least_head:
        begin = f"Device {device} cannot begin before {amount(problem, ends.least_head)}{since}. {busy.text}"
    else:
        begin = f"Device {device}: {busy.text[0].lower()}{busy.text[1:]}"
    rest = f"From there the way {until} take {amount(problem, back)}" if back else "Together"
    text = f"{begin} {rest}: {amount(problem, value)}."
    return Certificate("head and tail", value, text, device, AroundDevice(device, ends.owner, to_last_forward))


BOUNDS.register(Bound("head and tail", head_and_tail, rank=1))
