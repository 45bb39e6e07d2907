"""Load: a device needs the time until its first pass can start plus the durations of all its passes."""

from __future__ import annotations

from pipesched.problem.formatting import amount
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.critical_paths import Paths, chains_on


def load(problem: Problem, objective: Objective) -> list[Certificate]:
    """Span: the device's work. Makespan: the way to the device, and its work."""
    paths = Paths(problem)
    found = []
    for device in range(problem.devices):
        work = paths.work(device)
        if objective is Objective.SPAN:
            text = f"Device {device} computes {amount(problem, work)} in all, one pass at a time."
            found.append(Certificate("load", work, text, device))
        else:
            found += _makespan(problem, paths, device, work)
    return found


def _makespan(problem: Problem, paths: Paths, device: int, work: int) -> list[Certificate]:
    stages = [stage for chain in chains_on(problem, device) for stage in chain]
    if not stages:
        return []
    head = min(paths.head[stage] for stage in stages)
    text = (
        f"Device {device} cannot start before {amount(problem, head)}, when the first activation reaches it, and then "
        f"computes {amount(problem, work)}, one pass at a time: {amount(problem, head + work)}."
    )
    return [Certificate("load", head + work, text, device)]


BOUNDS.register(Bound("load", load, rank=2))
