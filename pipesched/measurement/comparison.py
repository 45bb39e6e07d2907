"""Comparison of a schedule's predicted, replayed and measured times: how far a real step differs, and why."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from pipesched.errors import BadInput
from pipesched.measurement.calibration import seconds_per_unit
from pipesched.measurement.trace import Measured, Step
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule, schedule_of
from pipesched.simulation.sampled_durations import run_under
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate_schedule


@dataclass(frozen=True)
class DeviceTimes:
    """Times of one device, in seconds: the predicted, replayed and measured ends of its last pass, and its work.

    Predicted is with the problem's durations, replayed the same order with each pass's measured duration. An end counts
    from the first start on any device, and the measured one is the median over the steps; it is 0 without passes. The
    work is the sum of the durations of the device's passes; a measured duration is the median over the steps.
    """

    predicted_end: float
    replayed_end: float
    measured_end: float
    predicted_work: float
    measured_work: float


@dataclass(frozen=True)
class Comparison:
    """A measured schedule and its prediction, in seconds.

    `schedule` is its name, `steps` the number of steps measured. `predicted` is the makespan of the order of the first
    step with the problem's durations, `replayed` with the measured duration of each pass (the median over the steps).
    `measured` is the median makespan of the steps, `best` the least. So `measured` differs from `replayed` because of
    the runtime, and `replayed` from `predicted` because of durations. `devices[d]` has the times of device d.
    """

    schedule: str
    steps: int
    predicted: float
    replayed: float
    measured: float
    best: float
    devices: tuple[DeviceTimes, ...]


def executed(measured: Measured, step: int = 0) -> Schedule:
    """Return the order in which every device ran its passes in the step of this number, from 0; with no pairs."""
    return schedule_of([[one.of for one in row] for row in measured.steps[step]], measured.schedule)


def compared(measured: Measured, problem: Problem) -> Comparison:
    """Compare a trace with the prediction of a problem of the same passes.

    `BadInput` if the problem does not allow the order of the first step, or the seconds of its time unit are not known.
    """
    schedule = _matching(measured, problem)
    tick = float(seconds_per_unit(problem, measured) * problem.tick)
    predicted = simulate(problem, schedule)
    work = measure(predicted).work_ticks
    replay = run_under(problem, schedule, lambda tasks, _: measured.seconds[tasks[0].of] / tick)
    ends = [median(_end(step, device) for step in measured.steps) for device in range(problem.devices)]
    devices = tuple(
        DeviceTimes(
            predicted_end=max((predicted.end(p) for p in schedule.passes_on(device)), default=0) * tick,
            replayed_end=float(replay.last[device, 0]) * tick,
            measured_end=ends[device],
            predicted_work=work[device] * tick,
            measured_work=sum(measured.seconds[p] for p in schedule.passes_on(device)),
        )
        for device in range(problem.devices)
    )
    return Comparison(
        schedule=measured.schedule,
        steps=len(measured.steps),
        predicted=measure(predicted).makespan_ticks * tick,
        replayed=float(replay.makespan[0]) * tick,
        measured=median(measured.makespans),
        best=min(measured.makespans),
        devices=devices,
    )


def _matching(measured: Measured, problem: Problem) -> Schedule:
    schedule = executed(measured)
    wrong = validate_schedule(problem, schedule)
    if wrong:
        raise BadInput(
            *(f"the trace of {measured.schedule} does not match {problem.name}: {v.text}" for v in wrong[:5])
        )
    return schedule


def _end(step: Step, device: DeviceId) -> float:
    """Return the end of a device's last pass, in seconds from the first start on any device; 0 if it ran none."""
    begin = min((one.start for row in step for one in row), default=0.0)
    return max((one.end for one in step[device]), default=begin) - begin
