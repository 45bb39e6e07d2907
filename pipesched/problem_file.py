"""The problem file as a user writes it: its keys, and how it becomes a Problem of integer ticks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from pipesched import visualiser_file
from pipesched.errors import BadInput
from pipesched.exact import common_step, read_json, read_yaml
from pipesched.file_errors import parse_model
from pipesched.file_rules import mistakes, placement_of
from pipesched.placement import Placement
from pipesched.problem import Costs, Memory, Objective, Problem
from pipesched.problem_form import REQUIRED, MemorySection, ProblemFile


def read_problem(path: str | Path) -> Problem:
    """Read a YAML or JSON problem file, in this form or the older visualiser's; `BadInput` lists every mistake."""
    document = read_document(path)
    if isinstance(document, dict) and document.get("format") == "pipesched-schedule":
        raise BadInput(
            f"{path}: found a schedule file; allowed: a problem file (validate, export and plot read schedules)"
        )
    if visualiser_file.looks_like_one(document):
        document = visualiser_file.to_problem_document(document, str(path))
    return problem_from(document, str(path), Path(path).stem)


def read_document(path: str | Path) -> object:
    """The file's content, decimals exact."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: cannot be read: it is not a text file") from None
    return read_json(text, str(path)) if Path(path).suffix.lower() == ".json" else read_yaml(text, str(path))


def problem_from(document: object, source: str, default_name: str = "problem") -> Problem:
    """A Problem from a document of a problem file; `source` names it in error messages."""
    try:
        form, found, wrong = parse_model(ProblemFile, document, REQUIRED)
    except BadInput as error:
        raise BadInput(f"{source}: {error}") from None
    found += mistakes(form, wrong)
    if found:
        raise BadInput(*(f"{source}: {mistake}" for mistake in found))
    return _build(form, default_name)


def _build(form: ProblemFile, default_name: str) -> Problem:
    """All numbers present and consistent: into integer ticks and integer memory."""
    assert form.devices and form.microbatches and form.times
    where = placement_of(form)
    times, stages = form.times, where.stages
    forward, backward = _per(times.forward, stages), _per(times.backward, stages)
    weight = None if times.weight is None else _per(times.weight, stages)
    whole = backward if weight is None else [b + w for b, w in zip(backward, weight, strict=True)]
    fused = whole if times.fused is None else _per(times.fused, stages)
    transfer = _per(times.transfer or Fraction(0), stages)
    overlap = None if times.overlapped is None else _per(times.overlapped, stages)
    tick = common_step([*forward, *backward, *(weight or ()), *fused, *transfer, *(overlap or ())])

    def ticks(numbers: list[Fraction]) -> tuple[int, ...]:
        return tuple(int(x / tick) for x in numbers)

    costs = Costs(
        forward=ticks(forward),
        backward=ticks(backward),
        weight=None if weight is None else ticks(weight),
        fused=ticks(fused),
        transfer=ticks(transfer),
        overlapped=None if overlap is None else ticks(overlap),
    )
    name = form.name or default_name
    objective = Objective(form.objective)
    memory = _memory(form.memory or MemorySection.model_validate({}), where)
    return Problem(where, form.microbatches, costs, memory, objective, name, form.time_unit, tick)


def _per(value: Fraction | list[Fraction] | None, count: int) -> list[Fraction]:
    """One number for each of `count` places; half as many serve both directions of a bidirectional placement."""
    assert value is not None
    if isinstance(value, list):
        return value * (count // len(value))
    return [value] * count


def _memory(section: MemorySection, where: Placement) -> Memory:
    activation = _per(section.activation if section.activation is not None else Fraction(1), where.stages)
    freed = _per(section.freed_by_backward or Fraction(0), where.stages)
    capacity = None if section.capacity is None else _per(section.capacity, where.devices)
    step = common_step([*activation, *freed, *(capacity or ())])
    limits = [None] * where.devices if capacity is None else [int(x / step) for x in capacity]
    return Memory(
        activation=tuple(int(x / step) for x in activation),
        freed=tuple(int(x / step) for x in freed),
        capacity=tuple(limits),
        unit=section.unit,
        resolution=step,
    )


def with_objective(problem: Problem, objective: Objective) -> Problem:
    """The same problem, to be minimised otherwise."""
    return replace(problem, objective=objective)
