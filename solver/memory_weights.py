"""Weights that make the memory of different devices comparable: in one unit, or as a share of each capacity."""

from __future__ import annotations

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps


def weights_of(problem: Problem) -> list[MemorySteps]:
    """Return by device the divisor of its memory, in steps, for comparisons: its capacity, or 1 for all devices.

    Capacities, less static memory, are taken if every device has one, all are above 0, and they differ.
    """
    known = [c for c in problem.room if c is not None]
    differ = len(known) == problem.devices and len(set(known)) > 1 and min(known) > 0
    return known if differ else [1] * problem.devices
