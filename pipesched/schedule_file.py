"""The schedule file: problem, order, start of every pass in exact ticks, value, bound and certificate, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pipesched.certificate import Certificate
from pipesched.errors import BadInput
from pipesched.exact import as_decimal, write_json
from pipesched.file_errors import shown
from pipesched.metrics import measure
from pipesched.passes import Task, parse_pass
from pipesched.problem import Objective, Problem
from pipesched.problem_file import problem_from, read_document
from pipesched.schedule import Schedule, parse_slot, slot_text
from pipesched.timeline import Timeline
from pipesched.version import VERSION

FORMAT = "pipesched-schedule"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class ScheduleFile:
    """What a schedule file holds."""

    timeline: Timeline
    lower_bound: int | None = None
    certificate: Certificate | None = None


def to_text(file: ScheduleFile) -> str:
    """The file's text; ValueError for a problem that no problem file can describe."""
    timeline, problem = file.timeline, file.timeline.problem
    metrics = measure(timeline)
    value = metrics.makespan if problem.objective is Objective.PERIOD else metrics.value(problem.objective)
    return write_json(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "tool": f"pipesched {VERSION}",
            "schedule": timeline.schedule.name,
            "problem": problem_document(problem),
            "tick": str(problem.tick),
            "objective": problem.objective.value,
            "value": value,
            "lower_bound": file.lower_bound,
            "certificate": _certificate_document(file.certificate),
            "orders": [[slot_text(slot) for slot in order] for order in timeline.schedule.orders],
            "starts": {str(p): timeline.start(p) for p in timeline.schedule.passes()},
        }
    )


def _certificate_document(certificate: Certificate | None) -> dict[str, object] | None:
    if certificate is None:
        return None
    return {
        "kind": certificate.kind,
        "value": certificate.value,
        "text": certificate.text,
        "device": certificate.device,
    }


def problem_document(problem: Problem) -> dict[str, Any]:
    """The problem as a problem file writes it; ValueError where it has passes of several tasks."""
    if problem.costs.parts:
        raise ValueError("passes of several tasks cannot be written to a problem file")
    costs, memory, where = problem.costs, problem.memory, problem.placement
    document: dict[str, Any] = {"name": problem.name, "devices": problem.devices, "microbatches": problem.microbatches}
    document["placement"] = where.name if where.name != "explicit" else list(where.stage_device)
    if where.name in ("interleaved", "wave"):
        document["chunks"] = where.stages // where.devices
    document["time_unit"] = problem.time_unit
    times = {"forward": costs.forward, "backward": costs.backward, "weight": costs.weight}
    if costs.weight is not None:
        times["fused"] = costs.fused
    times |= {"transfer": costs.transfer, "overlapped": costs.overlapped}
    document["times"] = {key: _numbers(values, problem.tick) for key, values in times.items() if values is not None}
    document["memory"] = {
        "unit": memory.unit,
        "activation": _numbers(memory.activation, memory.resolution),
        "freed_by_backward": _numbers(memory.freed, memory.resolution),
    }
    limits = [c for c in memory.capacity if c is not None]
    if limits:
        if len(limits) < problem.devices:
            raise ValueError("a problem file limits the memory of every device or of none")
        document["memory"]["capacity"] = _numbers(limits, memory.resolution)
    document["objective"] = problem.objective.value
    return document


def _numbers(values: Sequence[int], step: Fraction) -> object:
    """One number where all are alike, else the list."""
    numbers = [as_decimal(x * step) for x in values]
    return numbers[0] if len(set(numbers)) == 1 else numbers


def read_schedule(path: str | Path) -> ScheduleFile:
    """Read a schedule file; `BadInput` says what is wrong with it. Broken rules are `validate`'s to find."""
    document = read_document(path)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadInput(f"{path}: not a schedule file (its `format` is not {FORMAT!r}); `pipesched solve` writes one")
    version = document.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise BadInput(
            f"{path}: format_version: found {shown(version)}; this version of the tool reads up to {FORMAT_VERSION}"
        )
    problem = problem_from(document.get("problem"), f"{path}: problem")
    reader = _Reader(str(path), document, problem)
    timeline = Timeline(problem, reader.schedule(), reader.starts())
    return ScheduleFile(timeline, reader.ticks("lower_bound"), reader.certificate())


class _Reader:
    """Reads the parts of a schedule file beside its problem; every value in ticks is in the file's own tick."""

    def __init__(self, path: str, document: Mapping[str, Any], problem: Problem) -> None:
        self._path, self._document = path, document
        try:
            tick = Fraction(str(document.get("tick")))
        except (ValueError, ZeroDivisionError):
            tick = Fraction(0)
        if tick <= 0:
            text = shown(document.get("tick"))
            raise BadInput(f"{path}: tick: found {text}; allowed: a fraction above 0, such as 1/1000")
        self._factor = tick / problem.tick

    def schedule(self) -> Schedule:
        orders = self._document.get("orders")
        if not isinstance(orders, list) or not all(isinstance(order, list) for order in orders):
            raise BadInput(f"{self._path}: orders: found no list of lists; allowed: one list of slots a device")
        try:
            slots = tuple(tuple(parse_slot(str(text)) for text in order) for order in orders)
        except BadInput as error:
            raise BadInput(f"{self._path}: orders: {error}") from None
        return Schedule(slots, str(self._document.get("schedule", "")))

    def starts(self) -> dict[Task, int]:
        starts = self._document.get("starts")
        if not isinstance(starts, dict):
            raise BadInput(f"{self._path}: starts: found none; allowed: the start of every pass, in ticks")
        try:
            return {Task(parse_pass(str(p))): self._whole(f"starts.{p}", tick) for p, tick in starts.items()}
        except BadInput as error:
            prefix = "" if str(error).startswith(self._path) else f"{self._path}: starts: "
            raise BadInput(f"{prefix}{error}") from None

    def ticks(self, key: str) -> int | None:
        value = self._document.get(key)
        return None if value is None else self._whole(key, value)

    def certificate(self) -> Certificate | None:
        held = self._document.get("certificate")
        if not isinstance(held, dict):
            return None
        device = held.get("device")
        return Certificate(
            kind=str(held.get("kind")),
            value=self._whole("certificate.value", held.get("value")),
            text=str(held.get("text")),
            device=device if isinstance(device, int) else None,
        )

    def _whole(self, key: str, value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            ticks = value * self._factor
            if ticks.denominator == 1:
                return int(ticks)
        raise BadInput(f"{self._path}: {key}: found {shown(value)}; allowed: a whole number of ticks")
