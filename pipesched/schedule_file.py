"""The schedule file: problem, order, start of every pass in exact ticks, value, bound and certificate, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from pipesched.amounts import amount
from pipesched.certificate import Certificate
from pipesched.errors import BadInput
from pipesched.exact import as_decimal, write_json
from pipesched.file_errors import shown
from pipesched.finer import finer
from pipesched.metrics import Metrics, measure
from pipesched.passes import Task, parse_pass
from pipesched.problem import Objective, Problem
from pipesched.problem_file import problem_from, read_document
from pipesched.schedule import Schedule, parse_slot, slot_text
from pipesched.timeline import Timeline
from pipesched.validator import validate
from pipesched.version import VERSION

FORMAT = "pipesched-schedule"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class ScheduleFile:
    """What a schedule file holds."""

    timeline: Timeline
    lower_bound: int | None = None
    certificate: Certificate | None = None
    value: int | None = field(default=None, compare=False)  # as stated; the timeline has its own

    @property
    def metrics(self) -> Metrics:
        """What is read off the timeline, and the period as stated, which no timeline tells."""
        found = measure(self.timeline)
        return replace(found, period=self.value) if self.timeline.problem.objective is Objective.PERIOD else found

    def false_claims(self) -> list[str]:
        """Where the figures a file states are not those of its own timeline; for timelines that are valid."""
        problem, found = self.timeline.problem, []
        if validate(self.timeline) or problem.objective is Objective.PERIOD:
            return []
        value = measure(self.timeline).value(problem.objective)
        if self.value is not None and self.value != value:
            stated, true = amount(problem, self.value), amount(problem, value)
            found.append(f"the file states a {problem.objective} of {stated}; its timeline has {true}")
        certified = self.certificate.value if self.certificate else None
        for name, bound in (("lower bound", self.lower_bound), ("certificate", certified)):
            if bound is not None and bound > value:
                stated, true = amount(problem, bound), amount(problem, value)
                found.append(f"the file states a {name} of {stated}, above its own timeline's {true}")
        return found


def to_text(file: ScheduleFile) -> str:
    """The file's text; ValueError for a problem that no problem file can describe."""
    timeline, problem = file.timeline, file.timeline.problem
    # No timeline tells its period: it is stated, or unknown.
    value = file.value if problem.objective is Objective.PERIOD else measure(timeline).value(problem.objective)
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
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        raise BadInput(
            f"{path}: format_version: found {shown(version)}; this version of the tool reads up to {FORMAT_VERSION}"
        )
    problem = problem_from(document.get("problem"), f"{path}: problem")
    reader = _Reader(str(path), document, problem)
    problem = reader.problem
    timeline = Timeline(problem, reader.schedule(), reader.starts())
    reader.check_objective(problem)
    return ScheduleFile(timeline, reader.ticks("lower_bound"), reader.certificate(), reader.ticks("value"))


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
        factor = tick / problem.tick
        # A period may be a fraction of the tick that the problem's times need: the file's own is then finer.
        fraction = problem.objective is Objective.PERIOD and factor.numerator == 1
        self.problem = finer(problem, factor.denominator) if fraction else problem
        self._factor = tick / self.problem.tick

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

    def check_objective(self, problem: Problem) -> None:
        stated = self._document.get("objective", problem.objective.value)
        if stated != problem.objective.value:
            allowed = f"{problem.objective}, as its problem says"
            raise BadInput(f"{self._path}: objective: found {shown(stated)}; allowed: {allowed}")

    def certificate(self) -> Certificate | None:
        held = self._document.get("certificate")
        if held is None:
            return None
        if not isinstance(held, dict):
            raise BadInput(f"{self._path}: certificate: found {shown(held)}; allowed: kind, value, text and device")
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
