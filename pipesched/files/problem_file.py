"""The problem file: its keys, and its conversion into a Problem in integer ticks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, gcd
from pathlib import Path
from typing import Any

from pipesched.errors import BadInput
from pipesched.files import visualiser_file
from pipesched.files.exact_numbers import read_json, read_yaml
from pipesched.files.link_times import links_of
from pipesched.files.problem_checks import mistakes, placement_of
from pipesched.files.problem_schema import REQUIRED, MemorySection, ProblemFile, Times
from pipesched.files.rounding import LARGEST, short, step_of
from pipesched.files.schema_errors import parse_model, shown
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Pool, Problem
from pipesched.problem.stage import stages_of

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
    times, links, tick, times_rounded = _times(form.times, where, form.microbatches)
    section = form.memory or MemorySection.model_validate({})
    held, pools, resolution, memory_rounded = _memory(section, where, form.microbatches)
    rounded = [*times_rounded, *memory_rounded]
    return Problem(
        where,
        form.microbatches,
        stages_of(**times, **held),
        pools,
        Objective(form.objective),
        form.name or default_name,
        form.time_unit,
        tick,
        section.unit,
        resolution,
        links,
        notes=(_ROUNDED.format(" and ".join(rounded)),) if rounded else (),
    )


# A list of numbers for each quantity, one a stage.
_Columns = dict[str, Any]


def _times(
    times: Times, where: Placement, microbatches: int
) -> tuple[_Columns, tuple[tuple[int, ...], ...], Fraction, list[str]]:
    """The times in ticks, those of links, the tick, and what a note says of them if they were rounded."""
    links = links_of(times.transfer)
    given = {key: _per(value, where.stages) for key, value in times if value is not None and key != "transfer"}
    if times.transfer is not None and not links:
        given["transfer"] = _per(times.transfer, where.stages)  # type: ignore[arg-type]
    numbers = [number for values in (*given.values(), *links) for number in values]
    step, rounded = step_of(numbers, microbatches * sum(numbers, Fraction(0)))
    ticks = {key: [round(number / step) for number in values] for key, values in given.items()}
    lags = [[round(number / step) for number in row] for row in links]
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
    all_ticks = [*fused, *(number for values in (*ticks.values(), *lags) for number in values)]
    tick = step * (gcd(*all_ticks) or 1)

    def in_ticks(values: list[int]) -> tuple[int, ...]:
        return tuple(int(number * step / tick) for number in values)

    columns = {"weight": None} | {key: in_ticks(values) for key, values in (ticks | {"fused": fused}).items()}
    return columns, tuple(map(in_ticks, lags)), tick, [f"times to multiples of {short(step)}"] if rounded else []


def _per(value: Fraction | list[Fraction] | None, count: int) -> list[Fraction]:
    """One number for each of `count` places; half as many serve both directions of a bidirectional placement."""
    assert value is not None
    if isinstance(value, list):
        return value * (count // len(value))
    return [value] * count


def _memory(
    section: MemorySection, where: Placement, microbatches: int
) -> tuple[_Columns, tuple[Pool, ...], Fraction, list[str]]:
    """What stages hold and devices have in whole steps, the step, and what a note says of it if it was rounded.

    Activations and capacities are rounded down, and what B gives back up, so that what fits still does.
    """
    activation = _per(section.activation if section.activation is not None else Fraction(1), where.stages)
    freed = _per(section.freed_by_backward or Fraction(0), where.stages)
    capacity = None if section.capacity is None else _per(section.capacity, where.devices)
    # A list as long as there are devices is theirs; a longer one is the stages'.
    by_stage = isinstance(section.static, list) and len(section.static) != where.devices
    static = _per(section.static or Fraction(0), where.stages if by_stage else where.devices)
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

    def in_steps(values: list[int]) -> tuple[int, ...]:
        return tuple(number // factor for number in values)

    columns = {"activation": in_steps(taken), "freed": in_steps(given)}
    besides = in_steps(held)
    if by_stage:
        columns["static"], besides = besides, (0,) * where.devices
    limits = in_steps(whole) if whole else (None,) * where.devices
    pools = tuple(Pool(limit, own) for limit, own in zip(limits, besides, strict=True))
    return columns, pools, step * factor, [f"memory to multiples of {short(step)}"] if rounded else []


def with_objective(problem: Problem, objective: Objective) -> Problem:
    """The same problem, to be minimised otherwise."""
    return replace(problem, objective=objective)
