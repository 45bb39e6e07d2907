"""How the memory of different devices is compared: in its own unit, or as a share of each capacity."""

from __future__ import annotations

from pipesched.problem.problem import Problem


def weights_of(problem: Problem) -> list[int]:
    """What each device's memory is divided by to compare devices: its capacity where these differ, else 1."""
    known = [c for c in problem.room if c is not None]
    differ = len(known) == problem.devices and len(set(known)) > 1 and min(known) > 0
    return known if differ else [1] * problem.devices
