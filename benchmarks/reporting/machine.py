"""The machine and versions that a table of measurements must state."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

from pipesched.problem.formatting import counted
from pipesched.version import VERSION


def machine(seed: int, workers: int, *others: str) -> str:
    """One line: processor count, system, versions (also of other packages), seed."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("ortools", *others))
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}; Python {platform.python_version()}, "
        f"{libraries}, pipesched {VERSION}; {counted(workers, 'worker')}, seed {seed}"
    )
