"""Load: a device needs the time until its first pass can start plus the durations of all its passes.

Where passes are several tasks, each stream of a device needs the time of all its tasks.
"""

from __future__ import annotations

from pipesched.problem.formatting import amount
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OnDevice, OnStream
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.critical_paths import Paths, chains_on


def load(problem: Problem, objective: Objective) -> list[Certificate]:
    """Span: the device's work. Makespan: the way to the device, and its work."""
    paths = Paths(problem)
    if not problem.network.one_task_each:
        return [one for device in range(problem.devices) for one in _streams(problem, paths, device)]
    found = []
    for device in range(problem.devices):
        work = paths.work(device)
        if objective is Objective.SPAN:
            text = f"Device {device} computes {amount(problem, work)} in all, one pass at a time."
            found.append(Certificate("load", work, text, device, OnDevice(device)))
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
    return [Certificate("load", head + work, text, device, OnDevice(device))]


def _streams(problem: Problem, paths: Paths, device: int) -> list[Certificate]:
    """One for each stream that has something to run whatever the modes; the first stream always has one."""
    found, first = [], problem.streams[0]
    for stream in problem.streams:
        work = paths.work(device) if stream == first else _least(problem, device, stream)
        if work or stream == first:
            text = f"Stream {stream} of device {device} runs tasks of {amount(problem, work)} in all, one at a time."
            found.append(Certificate("load", work, text, device, OnStream(device, stream)))
    return found


def _least(problem: Problem, device: int, stream: str) -> int:
    """The least time of a device's tasks on a stream other than the first; blocks, if there are any, use only that."""
    if problem.overlaps:
        return 0

    def ticks(stage: int, *kinds: PassKind) -> int:
        tasks = (task for kind in kinds for task in problem.stages[stage].tasks_of(kind))
        return sum(task.ticks for task in tasks if task.stream == stream)

    total = 0
    for stage in problem.placement.stages_of[device]:
        whole = ticks(stage, BW)
        backward = min(whole, ticks(stage, B, W)) if problem.splittable else whole
        total += (ticks(stage, F) + backward) * len(problem.microbatches_of[stage])
    return total


BOUNDS.register(Bound("load", load, rank=2, several_streams=True))
