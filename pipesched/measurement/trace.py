"""Measured traces: when each pass of a schedule ran, over several steps, on one clock for all devices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import write_json
from pipesched.files.problem_file import problem_from, read_document
from pipesched.files.problems.document import problem_document
from pipesched.files.schema_errors import shown
from pipesched.problem.passes import Pass, parse_pass
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.version import VERSION

FORMAT = "pipesched-measured"
FORMAT_VERSION = 1


class MeasuredPass(NamedTuple):
    """A pass as it ran, from `start` to `end`, in seconds from the start of its step, without waiting for its input."""

    of: Pass
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


# What every device ran in one step, in the order it ran it: `step[d]` is device d's.
Step = tuple[tuple[MeasuredPass, ...], ...]


@dataclass(frozen=True)
class Measured:
    """Several measured steps of one schedule on a real machine.

    Every step has the same passes, in the schedule's own micro-batch numbers. `problem` is the problem that the
    schedule was made for, whose times are the prediction; `schedule` is the schedule's name. `seconds_per_unit` is the
    intended length of one unit of the problem's time, None if the unit is only a label. `split` is how PyTorch split
    backwards into B and W: `autograd`, `store` (gradients of weights stored for later), or `none`. `machine` and
    `versions` are free text by name.
    """

    problem: Problem
    schedule: str
    steps: tuple[Step, ...]
    split: str = "autograd"
    seconds_per_unit: float | None = None
    machine: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def makespans(self) -> tuple[float, ...]:
        """The seconds from each step's first start to its last end, on any device, in the order of the steps."""
        return tuple(_makespan(step) for step in self.steps)

    @property
    def best(self) -> Step:
        """The step that took the least time, which other work on the machine disturbed least."""
        return self.steps[self.makespans.index(min(self.makespans))]

    @cached_property
    def seconds(self) -> dict[Pass, float]:
        """The duration of each pass in seconds: the median over the steps."""
        ran: dict[Pass, list[float]] = {}
        for step in self.steps:
            for row in step:
                for one in row:
                    ran.setdefault(one.of, []).append(one.seconds)
        return {p: median(times) for p, times in ran.items()}


def _makespan(step: Step) -> float:
    passes = [one for row in step for one in row]
    return max((one.end for one in passes), default=0.0) - min((one.start for one in passes), default=0.0)


def to_text(measured: Measured) -> str:
    """Return the text of a trace file, in which a pass is a list of name, start and end.

    `steps` has by step and device the passes in order, in seconds from the start of the step on one clock (`clock` says
    so). The other keys are `format`, `format_version`, `tool`, and those of `Measured`: `schedule`, `problem` (as in a
    problem file), `split`, `seconds_per_unit`, `machine` and `versions`. ValueError if no problem file can express the
    trace's problem.
    """
    return write_json(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "tool": f"pipesched {VERSION}",
            "schedule": measured.schedule,
            "problem": problem_document(measured.problem),
            "split": measured.split,
            "seconds_per_unit": measured.seconds_per_unit,
            "clock": "seconds from the start of the step, one clock for all devices",
            "steps": [[[[str(p), start, end] for p, start, end in row] for row in step] for step in measured.steps],
            "machine": dict(measured.machine),
            "versions": dict(measured.versions),
        }
    )


def read_measured(path: str | Path) -> Measured:
    """Read a measured trace; `BadInput` says what is wrong with it, or that it cannot be read."""
    document = read_document(path)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadInput(
            f"{path}: not a measured trace (its `format` is not {FORMAT!r}); `pipesched run -o DIR` writes one"
        )
    version = document.get("format_version")
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        raise BadInput(f"{path}: format_version: found {shown(version)}; this version reads up to {FORMAT_VERSION}")
    problem = problem_from(document.get("problem"), f"{path}: problem")
    unit = document.get("seconds_per_unit")
    return Measured(
        problem=problem,
        schedule=str(document.get("schedule", "")),
        steps=_steps(path, document.get("steps"), problem),
        split=str(document.get("split", "")),
        seconds_per_unit=None if unit is None else _seconds(f"{path}: seconds_per_unit", unit),
        machine=_texts(document.get("machine")),
        versions=_texts(document.get("versions")),
    )


def _steps(path: str | Path, given: Any, problem: Problem) -> tuple[Step, ...]:
    """Read the steps of a trace, `given` as parsed from JSON.

    All must have the same passes, on the problem's devices. `path` names the file in messages; `BadInput` says what is
    wrong.
    """
    if not isinstance(given, list) or not given:
        raise BadInput(f"{path}: steps: found {shown(given)}; allowed: a list of at least one step")
    steps = tuple(_step(f"{path}: steps.{number}", step, problem) for number, step in enumerate(given))
    expected = [sorted(one.of for one in row) for row in steps[0]]
    for number, step in enumerate(steps):
        if [sorted(one.of for one in row) for row in step] != expected:
            raise BadInput(f"{path}: steps.{number}: found other passes than in steps.0; allowed: the same in each")
    return steps


def _step(where: str, given: Any, problem: Problem) -> Step:
    if not isinstance(given, list) or len(given) != problem.devices or not all(isinstance(row, list) for row in given):
        raise BadInput(
            f"{where}: found {shown(given)}; allowed: one list of passes for each of {problem.devices} devices"
        )
    return tuple(
        tuple(_pass(f"{where}.{device}.{place}", entry, device, problem) for place, entry in enumerate(row))
        for device, row in enumerate(given)
    )


def _pass(where: str, entry: Any, device: DeviceId, problem: Problem) -> MeasuredPass:
    if not isinstance(entry, list) or len(entry) != 3:
        raise BadInput(f'{where}: found {shown(entry)}; allowed: a pass, its start and its end: ["F0.0", 0.0, 0.1]')
    p = parse_pass(str(entry[0]))
    if p.stage >= problem.placement.stages or problem.device(p) != device or p.microbatch >= problem.microbatches:
        raise BadInput(f"{where}: found {p} on device {device}; allowed: passes of the problem on their own device")
    one = MeasuredPass(p, _seconds(where, entry[1]), _seconds(where, entry[2]))
    if one.end < one.start:
        raise BadInput(f"{where}: found an end before the start; allowed: start, then end, in seconds")
    return one


def _seconds(where: str, value: Any) -> float:
    number = math.nan
    if not isinstance(value, bool):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
    if not math.isfinite(number) or number < 0:
        raise BadInput(f"{where}: found {shown(value)}; allowed: seconds, a finite number of at least 0")
    return number


def _texts(given: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in given.items()} if isinstance(given, dict) else {}
