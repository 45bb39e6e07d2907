"""The problem file: its keys, and its conversion into a Problem in integer ticks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, gcd
from pathlib import Path

from pipesched.errors import BadInput
from pipesched.files import visualiser_file
from pipesched.files.exact_numbers import read_json, read_yaml
from pipesched.files.problem_checks import mistakes, placement_of
from pipesched.files.problem_schema import REQUIRED, MemorySection, ProblemFile, Times
from pipesched.files.rounding import LARGEST, short, step_of
from pipesched.files.schema_errors import parse_model, shown
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Costs, Memory, Objective, Problem

# More than the schedule file of the largest problem there may be.
MOST_BYTES = 256 * 2**20
_ROUNDED = (
    "numbers with more digits than exact 64-bit sums allow were rounded: {}, which keeps 1e-9 of the largest; all "
    "that is found and proved is about the rounded numbers"
)


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
        with Path(path).open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise BadInput(f"{path}: found more than {MOST_BYTES} bytes; allowed: up to so many")
        text = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: cannot be read: it is not a text file") from None
    if not text.strip():
        raise BadInput(f"{path}: the file is empty")
    return read_json(text, str(path)) if Path(path).suffix.lower() == ".json" else read_yaml(text, str(path))


def problem_from(document: object, source: str = "problem", default_name: str = "problem") -> Problem:
    """A Problem from a document of a problem file: a dictionary with the file's keys, the way to build one in code.

    `source` names it in error messages. `BadInput` lists every mistake, as for a file.
    """
    try:
        form, found, wrong = parse_model(ProblemFile, document, REQUIRED)
    except BadInput as error:
        raise BadInput(f"{source}: {error}") from None
    found += mistakes(form, wrong)
    if found:
        raise BadInput(*(f"{source}: {mistake}" for mistake in found))
    try:
        return _build(form, default_name)
    except BadInput as error:
        raise BadInput(f"{source}: {error}") from None


def _build(form: ProblemFile, default_name: str) -> Problem:
    """All numbers present and consistent: into integer ticks and integer memory."""
    assert form.devices and form.microbatches and form.times
    where = placement_of(form)
    costs, tick, times_rounded = _costs(form.times, where.stages, form.microbatches)
    memory, memory_rounded = _memory(form.memory or MemorySection.model_validate({}), where, form.microbatches)
    rounded = [*times_rounded, *memory_rounded]
    notes = (_ROUNDED.format(" and ".join(rounded)),) if rounded else ()
    name = form.name or default_name
    return Problem(
        where, form.microbatches, costs, memory, Objective(form.objective), name, form.time_unit, tick, notes
    )


def _costs(times: Times, stages: int, microbatches: int) -> tuple[Costs, Fraction, list[str]]:
    """The times in ticks, the tick, and what a note says of them if they were rounded."""
    given = {key: _per(value, stages) for key, value in times if value is not None}
    given.setdefault("transfer", [Fraction(0)] * stages)
    numbers = [number for values in given.values() for number in values]
    step, rounded = step_of(numbers, microbatches * sum(numbers, Fraction(0)))
    ticks = {key: [round(number / step) for number in values] for key, values in given.items()}
    whole = ticks["backward"]
    if "weight" in ticks:
        whole = [b + w for b, w in zip(whole, ticks["weight"], strict=True)]
    fused = ticks.get("fused", whole)
    if "fused" in ticks:
        # Rounding must not make a fused backward cheaper than its two parts where it is not.
        exact = zip(given["fused"], given["backward"], given["weight"], strict=True)
        longer = [one >= b + w for one, b, w in exact]
        fused = [max(one, w) if long else one for one, w, long in zip(fused, whole, longer, strict=True)]
    # The rounded numbers may have a larger step in common.
    tick = step * (gcd(*fused, *(number for values in ticks.values() for number in values)) or 1)
    times_in = {key: tuple(int(number * step / tick) for number in values) for key, values in ticks.items()}
    costs = Costs(
        forward=times_in["forward"],
        backward=times_in["backward"],
        weight=times_in.get("weight"),
        fused=tuple(int(number * step / tick) for number in fused),
        transfer=times_in["transfer"],
        overlapped=times_in.get("overlapped"),
    )
    return costs, tick, [f"times to multiples of {short(step)}"] if rounded else []


def _per(value: Fraction | list[Fraction] | None, count: int) -> list[Fraction]:
    """One number for each of `count` places; half as many serve both directions of a bidirectional placement."""
    assert value is not None
    if isinstance(value, list):
        return value * (count // len(value))
    return [value] * count


def _memory(section: MemorySection, where: Placement, microbatches: int) -> tuple[Memory, list[str]]:
    """The memory in whole steps, and what a note says of it if it was rounded.

    Activations and capacities are rounded down, and what B gives back up, so that what fits still does.
    """
    activation = _per(section.activation if section.activation is not None else Fraction(1), where.stages)
    freed = _per(section.freed_by_backward or Fraction(0), where.stages)
    capacity = None if section.capacity is None else _per(section.capacity, where.devices)
    static = _static(section.static, where)
    passes = [*activation, *freed]
    ample = max(capacity or [Fraction(0)])
    step, rounded = step_of(passes, microbatches * sum(map(abs, passes)) + ample, also=[*(capacity or ()), *static])
    taken = [floor(number / step) for number in activation]
    given = [min(most, ceil(number / step)) for most, number in zip(taken, freed, strict=True)]
    held = [floor(number / step) for number in static]
    whole = [floor(number / step) for number in capacity or ()]
    if whole and max(whole) > LARGEST:
        most = float(LARGEST * step)
        raise BadInput(
            f"memory.capacity: found {shown(float(max(capacity or [])))}; allowed: up to {most:.2g} with activations "
            "so small or of so many digits, or leave capacity out where memory is ample"
        )
    factor = gcd(*taken, *given, *whole, *held) or 1
    room = [(most - used) // factor for most, used in zip(whole, held, strict=True)] if whole else None
    memory = Memory(
        activation=tuple(number // factor for number in taken),
        freed=tuple(number // factor for number in given),
        capacity=tuple(room or [None] * where.devices),
        unit=section.unit,
        resolution=step * factor,
        static=tuple(number // factor for number in held) if any(held) else (),
    )
    return memory, [f"memory to multiples of {short(step)}"] if rounded else []


def _static(given: Fraction | list[Fraction] | None, where: Placement) -> list[Fraction]:
    """What each device always holds. A list as long as there are devices is theirs; a longer one is the stages'."""
    if isinstance(given, list) and len(given) != where.devices:
        return [sum((given[s] for s in held), Fraction(0)) for held in where.stages_of]
    return _per(given or Fraction(0), where.devices)


def with_objective(problem: Problem, objective: Objective) -> Problem:
    """The same problem, to be minimised otherwise."""
    return replace(problem, objective=objective)
