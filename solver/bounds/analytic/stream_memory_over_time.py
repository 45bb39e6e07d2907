"""Memory times time of a device whose passes consist of several tasks: all activations must fit its capacity over time.

An activation is in memory from the start of its forward to the end of its backward, at least as long as the path along
its micro-batch; the part that its weight tasks need stays until these end (energetic reasoning; Baptiste, Le Pape and
Nuijten, Annals of Operations Research 92, 1999).
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

from pipesched.problem.attainable_spans import largest_denominator, least_from
from pipesched.problem.formatting import amount
from pipesched.problem.network.task_network import TaskType
from pipesched.problem.passes import F, PassKind
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, MemoryTicks, StageId
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import MemoryOfDevice
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.stream_chains import StreamChains, stream_chains

# The name of its certificates.
NAME = "memory over time of tasks"


def memory_over_time(problem: Problem, objective: Objective) -> list[Certificate]:
    """Return the bound by memory over time for each device with limited memory.

    It is on the makespan or the device's own span. All activations, each for the time it is in memory at least, must
    fit the device's memory over time. Empty where `stream_chains` does not cover the problem.
    """
    chains = stream_chains(problem) if any(room is not None for room in problem.room) else None
    if chains is None:
        return []
    problem = chains.problem
    limited = [device for device, room in enumerate(problem.room) if room is not None and _usable(problem, device)]
    return [_certificate(chains, objective, device) for device in limited]


def _certificate(chains: StreamChains, objective: Objective, device: DeviceId) -> Certificate:
    """Return a device's certificate; its value is the sum of three times in ticks.

    They are the least time before the device's first forward, the memory times ticks that its activations need divided
    by its memory, and the least time after its last backward.
    """
    problem = chains.problem
    whose = device if objective.by_device else None
    heads, tails = chains.heads(whose), chains.tails(whose)
    last = problem.network.backwards[0]
    begin, left, needed = list[int](), list[int](), 0
    for stage in problem.placement.stages_of[device]:
        if not problem.microbatches_of[stage]:
            continue
        begin += [int(times[0]) for task in chains.first_tasks(F, stage) if (times := heads[task]) is not None]
        ends = _ends(problem, last[-1], stage)
        left += [int(times[-1]) for task in ends if (times := tails[task]) is not None]
        needed += len(problem.microbatches_of[stage]) * _needed(chains, stage, last)
    head, tail = min(begin, default=0), min(left, default=0)
    room = _usable(problem, device)
    value = least_from(head + Fraction(needed, room) + tail, largest_denominator(problem))
    text = (
        f"Each activation is in the memory of device {device} from the start of its forward to the end of its backward "
        f"(what weight tasks need, to the end of these). That takes the micro-batch at least the way along its chain, "
        f"and all of them go into the memory in no less than {amount(problem, Fraction(needed, room))}, not before "
        f"{amount(problem, head)} and with {amount(problem, tail)} left behind: {amount(problem, value)}."
    )
    return Certificate(NAME, value, text, device, MemoryOfDevice(device, whose))


def _usable(problem: Problem, device: DeviceId) -> MemorySteps:
    """Return the most memory of a device that can be in use at once: a multiple of the common divisor of all amounts.

    0 where its memory is unlimited.
    """
    room, stages = problem.room[device] or 0, problem.placement.stages_of[device]
    changes = [change for (_, stage), change in problem.network.change.items() if stage in stages]
    common = gcd(*(one for change in changes for one in change))
    return room - room % common if common else room


def _needed(chains: StreamChains, stage: StageId, last: tuple[PassKind, ...]) -> MemoryTicks:
    """Return the least memory times ticks that one micro-batch's activation of a stage takes.

    `last` are the kinds of pass of a backward, (B, W) or (BW,): what W frees is in memory until W ends.
    """
    problem = chains.problem
    change, since = problem.network.change, chains.since(F, stage)
    until = [max(since[end] for end in _ends(problem, kind, stage)) for kind in last]
    taken = change[F, stage]
    whole = min(taken.at_start, taken.total)
    until_last = min(whole, taken.total + change[last[0], stage].total) if len(last) > 1 else whole
    return until_last * until[-1] + (whole - until_last) * until[0]


def _ends(problem: Problem, kind: PassKind, stage: StageId) -> list[TaskType]:
    return [TaskType(kind, stage, part) for part in problem.network.ends[kind, stage]]


BOUNDS.register(Bound(NAME, memory_over_time, several_streams=True, reads_memory=True))
