"""Round trips: memory lets a device run only limited work before its first backward and after its last forward.

Zero Bubble (arXiv 2401.10241), section 3, counts the forwards that fill the wait for the first backward. The wait for
the last one is its mirror image. No order avoids either, and they add up where they cannot be the same time.
"""

from __future__ import annotations

from pipesched.problem.formatting import amount, counted
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import DeviceId, Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OnDevice
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.critical_paths import Paths, visited
from solver.bounds.analytic.idle_time.idle_gaps import (
    ForcedRoundTrips,
    IdleGap,
    forced_apart,
    forced_round_trips,
    head_gap,
    tail_gap,
)


def round_trip(problem: Problem, objective: Objective) -> list[Certificate]:
    """Return for each device its work plus idle time before the first backward, after the last forward, and between.

    Devices without passes have no certificate. The idle time between counts only where memory forces round trips one
    after the other. For the makespan, the least time before the device's first pass is added. The problem must be
    plain.
    """
    paths = Paths(problem)
    found = []
    for device, chains in visited(paths.view):
        # Either all forwards run before the first backward, or a backward starts before the last forward. In the
        # second case the two gaps are apart and add up; in the first they may be the same time.
        tail = tail_gap(paths, device, chains)
        all_first, mixed = (head_gap(paths, device, chains, spare) for spare in (0, 1))
        together = max(all_first.idle, tail.idle)
        middle = forced_round_trips(paths, device, chains)
        if forced_apart(paths.view, device, chains):
            head, idle, why = mixed, mixed.idle + middle.trips * middle.gap.idle + tail.idle, _FORCED
            if middle.trips and middle.gap.idle:
                why = f"{_in_a_row(problem, middle)} {_FORCED}"
        elif mixed.idle + tail.idle <= together:
            head, idle, why = mixed, mixed.idle + tail.idle, _APART
        else:
            head, idle, why = all_first, together, _TOGETHER
        start = 0 if objective.by_device else min(paths.head[chain[0]] for chain in chains)
        value = start + paths.work(device) + idle
        text = _text(problem, start, paths.work(device), head, tail, f"{why} {amount(problem, value)}.", device)
        found.append(Certificate("round trip", value, text, device, OnDevice(device)))
    return found


def _in_a_row(problem: Problem, middle: ForcedRoundTrips) -> str:
    """Return a certificate's sentence on the round trips between the first and the last, and the idle time in each."""
    count, length, filled, idle = middle.trips, middle.gap.length, middle.gap.filled, middle.gap.idle
    return (
        f"So many micro-batches fit into memory at once that {counted(count, 'wait')} more for the pipeline's "
        f"latency, {amount(problem, length)}, must lie between, one after the other, in each of which at most "
        f"{amount(problem, filled)} of work can run: it idles {amount(problem, idle)} in each."
    )


_FORCED = "Memory forces a backward before the last forward, so these waits are apart and add up:"
_APART = "The two waits add up if a backward starts before the last forward; if none does, it idles at least as long:"
_TOGETHER = "Memory has room for all forwards before the first backward, so the two may be one, the longer:"


def _text(
    problem: Problem, start: Ticks, work: Ticks, head: IdleGap, tail: IdleGap, closing: str, device: DeviceId
) -> str:
    def say(ticks: int) -> str:
        return amount(problem, ticks)

    opening = f"Device {device} cannot start before {say(start)} and" if start else f"Device {device}"
    return (
        f"{opening} computes {say(work)} in all. "
        f"From the start of its first forward to its first backward at least {say(head.length)} pass, and only "
        f"forwards can run, {say(head.filled)} at most: it idles {say(head.idle)}. "
        f"From the end of its last forward to that micro-batch's backward at least {say(tail.length)} pass, and memory "
        f"leaves at most {say(tail.filled)} still to run: it idles {say(tail.idle)}. {closing}"
    )


BOUNDS.register(Bound("round trip", round_trip, rank=3, reads_memory=True))
