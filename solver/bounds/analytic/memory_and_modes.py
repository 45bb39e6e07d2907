"""Memory and modes: fast modes of passes cost their device time, slow ones occupy memory for longer.

Within a given time a device can run only a limited number of passes outside of overlapped blocks, and split only a
limited number of backwards. The others take longer, and so do the round trips of the devices upstream, whose
activations stay in memory meanwhile. A device's memory provides only a limited memory times time: its capacity (in
blocks one activation more at a time than forwards have run outside of blocks), less what is unused while forwards fill
it one by one and backwards empty it one by one. If that is less than the round trips need, there is no schedule of that
time.
"""

from __future__ import annotations

import numpy as np

from pipesched.problem.attainable_spans import largest_denominator, least_above
from pipesched.problem.formatting import amount, memory_text, plain
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OnDevice
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.critical_paths import Paths, visited
from solver.bounds.analytic.modes.counts import modes_count
from solver.bounds.analytic.modes.delays import most_split
from solver.bounds.analytic.modes.memory import DeviceMemory, MemoryTime
from solver.bounds.analytic.modes.values import ModeValues


def memory_and_modes(problem: Problem, objective: Objective) -> list[Certificate]:
    """Return the bound on the makespan or span (`objective`) by memory over time and modes of passes.

    It is one certificate, of the device whose memory is too small. Within a given time, devices can run only so many
    passes in the modes that use little of that device's memory. The bound is the next value that a schedule can have
    above the longest time found that this refutes. Empty where blocks and splitting cannot save time, and where the
    bound by counts alone (`unpaired_passes`) is as strong. The problem must be plain.
    """
    paths = Paths(problem)
    if not modes_count(paths.view):
        return []
    devices = [ModeValues(paths, objective, device) for device, _ in visited(paths.view)]
    starts = [0 if objective.by_device else min(paths.head[chain[0]] for chain in one.chains) for one in devices]
    memories = {at: DeviceMemory(devices, at, starts[at]) for at, one in enumerate(devices) if _limited(one)}

    def short(until: Ticks) -> tuple[int, MemoryTime] | None:
        splits = [most_split(one, until) for one in devices]
        every = [(at, memory.memory_time(until, splits, at)) for at, memory in memories.items()]
        at, worst = min(every, key=lambda pair: pair[1].given - pair[1].needed)
        return (at, worst) if worst.given < worst.needed else None

    low = max(one.least()[0] for one in devices) - 1
    if not memories or short(low + 1) is None:
        return []
    low, step = low + 1, 1
    while short(low + step) is not None:
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if short(middle) is not None else (low, middle)
    found = short(low)
    assert found is not None
    return [_certificate(problem, devices, low, *found)]


def _limited(one: ModeValues) -> bool:
    """True if memory limits the device's activations, and no gradient pass takes memory.

    It limits them by capacity or by what blocks need.
    """
    limit = len(one.counts.alone) > 1 if one.capacity is None else one.capacity > 0
    return limit and all(one.view.freed_by_backward(s) >= 0 for s in one.counts.stages)


def _certificate(problem: Problem, devices: list[ModeValues], until: Ticks, at: int, least: MemoryTime) -> Certificate:
    value, device = least_above(until, largest_denominator(problem)), devices[at].device
    unit = f"{problem.memory_unit} x {problem.time_unit or 'time unit'}"

    def product(number: int) -> str:
        return plain(float(number * problem.resolution * problem.tick))

    most = ", ".join(f"device {one.device} {_most(one, until)}" for one in devices)
    text = (
        f"In {amount(problem, until)} at most so many {_names(devices[at])}: {most}. With the least times that this "
        f"leaves for passes, the activations of device {device} take at least {product(least.needed)} {unit} from "
        f"forward to backward. Of the {memory_text(problem, least.capacity)} that it can hold at once it has "
        f"{product(least.given)} in that time, since forwards fill and backwards empty it one by one: so "
        f"{amount(problem, value)} at least."
    )
    return Certificate("memory and modes", value, text, device, OnDevice(device))


def _names(one: ModeValues) -> str:
    outside, split = len(one.counts.alone) > 1, len(one.counts.split) > 1
    return " and ".join(["forwards run outside of overlapped blocks"] * outside + ["backwards are split"] * split)


def _most(one: ModeValues, until: Ticks) -> str:
    """Return as text a device's most forwards outside of blocks, and most split backwards, within `until` ticks."""
    splits = most_split(one, until)
    outside = [int(one.counts.alone[np.flatnonzero(splits >= 0).max()])] * (len(one.counts.alone) > 1)
    return " and ".join(map(str, outside + [int(splits.max())] * (len(one.counts.split) > 1)))


BOUNDS.register(Bound("memory and modes", memory_and_modes, rank=7, reads_memory=True))
