"""Execution of one schedule with PyTorch, in new processes or under torchrun, with the outcome as a trace."""

from __future__ import annotations

import importlib.util
import os

from pipesched.errors import BadInput
from pipesched.extras import to_install
from pipesched.measurement.trace import Measured
from pipesched.problem.units import seconds_in
from runtime.pytorch.processes.launch import launch
from runtime.running.job import Job, Outcome


def need_torch() -> None:
    """Raise `BadInput` with the command to install torch if it is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise BadInput(f"torch: not installed, and this command needs it: {to_install('pipesched[torch]')}")


def seconds_per_unit(job: Job) -> float | None:
    """Return the seconds of one unit of the problem's time in this run.

    The job's `seconds_per_tick` decides if it is set, else the unit. None if the unit is only a label and the job has
    no `seconds_per_tick`.
    """
    if job.seconds_per_tick:
        return job.seconds_per_tick / float(job.problem.tick)
    seconds = seconds_in(job.problem.time_unit)
    return None if seconds is None else float(seconds)


def execute(job: Job, timeout: float, device: str) -> Outcome | None:
    """Run a job in new processes, or, under torchrun, as this rank of it; None on torchrun's ranks other than 0.

    `timeout` is the seconds that all processes may stand still; `device` is `cpu`, `cuda` or `auto`. `BadInput` if
    torch is not installed, or torchrun's processes are not as many as the devices, or for what the user can change in
    the model; `RunFailed` if the new processes stall or fail. Under torchrun a stalled rank ends its own process.
    """
    need_torch()
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return launch([job], timeout, device)[0]
    world = int(os.environ["WORLD_SIZE"])
    if world != job.problem.devices:
        raise BadInput(
            f"WORLD_SIZE: found {world}; the schedule has {job.problem.devices} devices: start one process each"
        )
    from runtime.pytorch.processes.worker import run_under_torchrun

    outcomes = run_under_torchrun([job], device, timeout)
    return None if outcomes is None else outcomes[0]


def measured_of(job: Job, outcome: Outcome) -> Measured:
    """Return the trace of a run without its first step, in which processes warm up; an only step is kept."""
    return Measured(
        problem=job.problem,
        schedule=job.schedule.name,
        steps=outcome.steps[1:] or outcome.steps,
        split=job.split,
        seconds_per_unit=seconds_per_unit(job),
        machine=outcome.machine,
        versions=outcome.versions,
    )
