"""Calibration: a problem with the durations of a measured trace in place of its own, to be solved again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from statistics import median

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import as_decimal
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from pipesched.measurement.trace import Measured
from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.units import SECONDS, seconds_in

_KEYS = {F: "forward", B: "backward", W: "weight", BW: "fused"}

# Durations are rounded to this many seconds: finer than what repeats, and short numbers of ticks.
RESOLUTION = Fraction(1, 10**6)


def seconds_per_unit(problem: Problem, measured: Measured | None = None) -> Fraction:
    """Return the seconds of the problem's time unit; `BadInput` if they are not known.

    They are those of the trace if it states them for a unit of this name, else those that the name stands for.
    """
    unit = problem.time_unit.strip()
    if measured is not None and measured.seconds_per_unit and unit == measured.problem.time_unit.strip():
        return Fraction(str(measured.seconds_per_unit))
    seconds = seconds_in(unit)
    if seconds is not None:
        return seconds
    known = ", ".join(SECONDS)
    raise BadInput(
        f"{problem.name}: time_unit: found {problem.time_unit!r}; to set it against seconds, allowed: {known}"
    )


def with_measured_times(problem: Problem, measured: Measured) -> Problem:
    """Return the problem with the trace's times.

    For each stage and kind of pass it is the median over micro-batches and steps, rounded to a microsecond, so that the
    tick is another one. Transfers, blocks and memory stay. A kind of pass that the trace lacks at a stage (a fused
    schedule has no B and W) keeps the problem's own time, scaled as that stage's other passes were, so that no mode of
    a backward gains from not having been measured. `BadInput` if the trace has another number of stages, the seconds of
    the problem's time unit are not known, or the problem has unequal micro-batches; ValueError where no file can
    express the problem.
    """
    if problem.placement.stages != measured.problem.placement.stages:
        found, allowed = measured.problem.placement.stages, problem.placement.stages
        raise BadInput(f"the trace of {measured.schedule} has {found} stages; {problem.name} has {allowed}")
    if problem.walks.scale:
        raise BadInput(f"{problem.name}: found microbatch_scale; allowed: micro-batches that are alike, as runs have")
    unit = seconds_per_unit(problem, measured)
    kinds = [kind for kind in _KEYS if kind in problem.stages[0].kinds]
    found_times = _medians(measured, problem, kinds, float(unit * problem.tick))
    document = problem_document(problem)
    step = RESOLUTION / unit
    for kind in kinds:
        times = [as_decimal(round(ticks * problem.tick / step) * step) for ticks in found_times[kind]]
        document["times"][_key(problem, kind)] = times
    measured_one = problem_from(document, f"{problem.name} with measured times", problem.name)
    return replace(measured_one, notes=problem.notes)


def _key(problem: Problem, kind: PassKind) -> str:
    """Return the key of a kind of pass in a problem file; without weight, backward is the full one."""
    return "backward" if kind is BW and W not in problem.stages[0].kinds else _KEYS[kind]


def _medians(
    measured: Measured, problem: Problem, kinds: list[PassKind], tick: float
) -> Mapping[PassKind, list[Fraction]]:
    """Return by kind of pass a list by stage of the median time, in ticks of `tick` seconds.

    A kind that was not measured on a stage gets its time in the problem, scaled by how the stage's other kinds differ
    from theirs.
    """
    ran: dict[tuple[PassKind, int], list[float]] = {}
    for step in measured.steps:
        for row in step:
            for one in row:
                ran.setdefault((one.of.kind, one.of.stage), []).append(one.seconds)
    times: dict[PassKind, list[Fraction]] = {kind: [] for kind in kinds}
    for stage in range(problem.placement.stages):
        ticks = {kind: problem.duration(Pass(kind, stage, 0)) for kind in kinds}
        found = {kind: median(ran[kind, stage]) / tick for kind in kinds if (kind, stage) in ran}
        planned = sum(ticks[kind] for kind in found)
        scale = sum(found.values()) / planned if planned else 1.0
        for kind in kinds:
            times[kind].append(Fraction(found.get(kind, ticks[kind] * scale)))
    return times
