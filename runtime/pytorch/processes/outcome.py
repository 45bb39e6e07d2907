"""Combination of all processes' reports on a job, and comparison of the executed order with the schedule."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from pipesched.measurement.trace import MeasuredPass, Step
from pipesched.problem.passes import Pass
from pipesched.problem.quantities import StageId
from pipesched.version import VERSION
from runtime.pytorch.gradient_check import StepResult, compare_losses, worst
from runtime.running.job import Job, Outcome


@dataclass
class Ran:
    """The report of one process on a job; `random` are those of its stages that draw random numbers, `host` its host.

    If the job was not run, `refused` is the reason, else None. `results` has for each compared step the comparison of
    losses and gradients with the reference. `times` has for each step a pair: the time at which the barrier before it
    ended, and the executed passes as triples (pass, start, end). All times are in seconds of the process's clock.
    """

    host: str
    random: tuple[StageId, ...] = ()
    refused: str | None = None
    results: list[StepResult] = field(default_factory=list)
    times: list[tuple[float, list[tuple[Pass, float, float]]]] = field(default_factory=list)


def outcome_of(job: Job, everyone: Sequence[Ran], device: torch.device) -> Outcome:
    """Return the outcome of a job from the reports of all ranks, in order: worst differences, executed orders, steps.

    If the runtime refused the job on a rank, the outcome is that refusal alone. `device` is that of rank 0, by which
    the machine is described.
    """
    refused = next((ran.refused for ran in everyone if ran.refused is not None), None)
    if refused is not None:
        return Outcome(job.name, refused)
    steps = [[ran.results[step] for ran in everyone] for step in range(job.compared)]
    parts = [part for step in steps for part in step]
    executed = tuple(tuple(p for p, _, _ in ran.times[0][1]) for ran in everyone)
    planned = [job.order_on(device) for device in range(job.problem.devices)]
    ordered = all(
        tuple(p for p, _, _ in times) == planned[d] for d, ran in enumerate(everyone) for _, times in ran.times
    )
    return Outcome(
        name=job.name,
        compared=sum(part.compared for part in parts),
        worst_loss=worst(one for number, step in enumerate(steps) for one in compare_losses(number, step)),
        worst_gradient=worst(part.worst_gradient for part in parts),
        missing=tuple(dict.fromkeys(name for part in parts for name in part.missing)),
        executed=executed,
        ordered=ordered,
        random=tuple(sorted(stage for ran in everyone for stage in ran.random)),
        steps=tuple(_step(everyone, number) for number in range(job.steps)),
        machine=_machine(device),
        versions={"pipesched": VERSION, "torch": torch.__version__, "python": platform.python_version()},
    )


def _step(everyone: Sequence[Ran], number: int) -> Step:
    """Return the measured passes of step `number` by device, in seconds from the first start on any device.

    Processes of one host share a clock; on several hosts, each counts from the barrier before the step.
    """
    one_host = len({ran.host for ran in everyone}) == 1
    rows = []
    for ran in everyone:
        began, times = ran.times[number]
        zero = 0.0 if one_host else began
        rows.append([MeasuredPass(p, start - zero, end - zero) for p, start, end in times])
    first = min((one.start for row in rows for one in row), default=0.0)
    return tuple(tuple(MeasuredPass(p, start - first, end - first) for p, start, end in row) for row in rows)


def _machine(device: torch.device) -> dict[str, str]:
    cuda = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processors": str(os.cpu_count()),
        "device": cuda or "cpu",
        "threads": str(torch.get_num_threads()),
    }
