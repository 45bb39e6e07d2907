"""Load: a device needs the time until its first pass can start, plus the durations of all its passes.

Where passes consist of several tasks, each stream of a device needs the time of all its tasks.
"""

from __future__ import annotations

from pipesched.problem.formatting import amount
from pipesched.problem.network.task_network import PassType, TaskTemplate
from pipesched.problem.passes import F
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from pipesched.problem.relaxed.relaxations import FURTHER_RESOURCES
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OnDevice, OnStream
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.critical_paths import Paths, chains_on


def load(problem: Problem, objective: Objective) -> list[Certificate]:
    """Return for each device the bound by its work: for the span its work, for the makespan also the time before it.

    Where passes consist of several tasks, it is the work of each stream of each device, for both objectives.
    """
    if problem.view is None:
        return [one for device in range(problem.devices) for one in _streams(problem, device)]
    paths, found = Paths(problem), []
    for device in range(problem.devices):
        work = paths.work(device)
        if objective.by_device:
            text = f"Device {device} computes {amount(problem, work)} in all, one pass at a time."
            found.append(Certificate("load", work, text, device, OnDevice(device)))
        else:
            found += _makespan(problem, paths, device, work)
    return found


def computes(problem: Problem, device: DeviceId) -> Ticks:
    """Return the least ticks that a device computes in all; with several streams, on the first of them.

    0 where passes of several tasks overlap in blocks.
    """
    return Paths(problem).work(device) if problem.view else _work(problem, device, problem.streams[0])


def _makespan(problem: Problem, paths: Paths, device: DeviceId, work: Ticks) -> list[Certificate]:
    stages = [stage for chain in chains_on(paths.view, device) for stage in chain]
    if not stages:
        return []
    head = min(paths.head[stage] for stage in stages)
    text = (
        f"Device {device} cannot start before {amount(problem, head)}, when the first activation reaches it, and then "
        f"computes {amount(problem, work)}, one pass at a time: {amount(problem, head + work)}."
    )
    return [Certificate("load", head + work, text, device, OnDevice(device))]


def _streams(problem: Problem, device: DeviceId) -> list[Certificate]:
    """Return a certificate for the first stream of a device, and for each other with tasks whatever the modes are."""
    found, first = [], problem.streams[0]
    for stream in problem.streams:
        work = _work(problem, device, stream)
        if work or stream == first:
            text = f"Stream {stream} of device {device} runs tasks of {amount(problem, work)} in all, one at a time."
            found.append(Certificate("load", work, text, device, OnStream(device, stream)))
    return found


def _work(problem: Problem, device: DeviceId, stream: str) -> Ticks:
    """Return the least ticks that the passes of all micro-batches occupy a stream of a device; 0 if there are blocks.

    Tasks that send tensors do not count: they may end after all passes.
    """
    network = problem.network

    def ticks(*passes: PassType) -> Ticks:
        tasks = [(of, task) for of in passes for task in network.tasks[of][: network.ends[of][-1] + 1]]
        return sum(task.ticks for of, task in tasks if on(of[1], task))

    def on(stage: StageId, task: TaskTemplate) -> bool:
        own, *further = task.resources
        return (network.device_of[stage], own.stream) == (device, stream) or (device, stream) in further

    total, own = 0, problem.placement.stages_of[device]
    stages = range(problem.placement.stages) if network.occupies_several else own
    for s in stages if not network.blocks else ():
        backward = min(ticks(*((kind, s) for kind in mode)) for mode in network.backwards)
        total += (ticks((F, s)) + backward) * len(network.numbers[F, s])
    return total


BOUNDS.register(Bound("load", load, rank=2, several_streams=True, keeping=frozenset((FURTHER_RESOURCES,))))
