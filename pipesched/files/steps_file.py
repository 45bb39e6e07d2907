"""Files of measured training steps for `calibrate`: YAML, JSON, or a CSV table with the columns of `layouts.csv`."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list, field, finite_number, whole_number
from pipesched.files.fields.section import Section
from pipesched.files.schema_errors import parse_model
from pipesched.files.text_file import read_text
from pipesched.layers.measured_step import MeasuredStep
from pipesched.layers.recompute_rule import MODULES


def _above_zero(value: object) -> Fraction | None:
    number = finite_number(value)
    return number if number is not None and number > 0 else None


def _counts(value: object) -> list[int] | None:
    entries = as_list(value)
    found = None if entries is None else [whole_number(1)(one) for one in entries]
    return [one for one in found if one is not None] if found and None not in found else None


def _mode(value: object) -> str | None:
    known = isinstance(value, str) and (value in ("none", "full", "selective") or {*value.split("+")} <= {*MODULES})
    return str(value) if known else None


def _placement(value: object) -> str | None:
    """Return `linear`, or `interleaved` with its chunks (`interleaved, 2 chunks`), as it is; None for anything else."""
    return value if isinstance(value, str) and value.partition(",")[0] in ("linear", "interleaved") else None


class StepEntry(Section):
    """One measured training step: its duration, and the layout that was trained.

    `tensor`, `context`, `pipeline`, `data` and `expert` are sizes of parallelism; exactly one of `microbatches` and
    `batch` is given. `recomputed_layers` and `placement`, columns of layouts.csv, are checked and not used.
    """

    required = ("seconds",)

    seconds: Annotated[Fraction, field("a number above 0", _above_zero, {"type": "number"})] | None = Field(
        None, description="of a step, the median over some"
    )
    tensor: field_types.Count = 1
    context: field_types.Count = 1
    pipeline: field_types.Count = 1
    data: field_types.Count = 1
    expert: field_types.Count = 1
    chunks: field_types.Count = Field(1, description="stages of a device")
    microbatch_size: field_types.Count = Field(1, description="sequences of a micro-batch")
    microbatches: field_types.Count | None = Field(None, description="of a step, on each data-parallel replica")
    batch: field_types.Count | None = Field(None, description="sequences of a step, instead of microbatches")
    sequence: field_types.Count | None = Field(None, description="tokens; default: the configuration's")
    schedule: field_types.Text | None = Field(None, description="its name; default 1f1b, with chunks interleaved-1f1b")
    recompute: Annotated[str, field(f"none, full, or some of {', '.join(MODULES)} joined by +", _mode)] | None = Field(
        None, description="what every layer recomputes; default none"
    )
    recomputed_layers: Annotated[int, field("a whole number of at least 0", whole_number(0))] | None = Field(
        None, description="as layouts.csv has it"
    )
    placement: Annotated[str, field("linear or interleaved", _placement)] | None = Field(
        None, description="as layouts.csv has it; with chunks interleaved"
    )
    partition: Annotated[list[int], field("layers of each stage, whole numbers", _counts)] | None = Field(
        None, description="layers of each stage; default: spread evenly"
    )


class StepsDocument(Section):
    """The keys of a steps file: measured steps of one model on devices of one kind."""

    config: field_types.Text | None = Field(None, description="the model's configuration")
    hardware: field_types.Text | None = Field(None, description="the device's name, or a hardware file")
    steps: list[StepEntry] | None = None


# Under this name a row of a table has its cells beyond the last column.
_BEYOND = "beyond the last column"


class StepsFile(NamedTuple):
    """Measured steps in the file's order, and the model's configuration and device if the file names them (else None).

    `unread` are columns of a table that describe nothing of a step.
    """

    steps: tuple[MeasuredStep, ...]
    config: str | None
    hardware: str | None
    unread: tuple[str, ...] = ()


def read_table(path: Path) -> StepsFile:
    """Read measured steps from a CSV file whose first line names the columns; `BadInput` lists every mistake.

    Lines without `seconds` are left out; columns that are not known are named in `unread`.
    """
    try:
        table = csv.DictReader(io.StringIO(read_text(path)), restkey=_BEYOND, restval="")
        rows = [(table.line_num, row) for row in table]
    except csv.Error as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    if not rows:
        raise BadInput(f"{path}: found no steps; allowed: a line with columns, then a line for each step")
    columns = [name for name in table.fieldnames or () if name]
    wrong = [f"found column {name} twice; allowed: once" for name in dict.fromkeys(columns) if columns.count(name) > 1]
    named = len(table.fieldnames or ())
    for line, row in rows:
        beyond = [cell for cell in row.get(_BEYOND, ()) if cell.strip()]
        if beyond:
            wrong.append(f"line {line}: found {beyond[0]!r} beyond the last column; allowed: {named} cells")
    if wrong:
        raise BadInput(*(f"{path}: {mistake}" for mistake in wrong))
    if "seconds" not in columns:
        raise BadInput(f"{path}: found no column seconds; allowed: {', '.join(StepEntry.model_fields)}")
    # Of a layouts.csv only the rows that were run have seconds.
    entries = [_cells(row, str(path)) for _, row in rows if row["seconds"].strip()]
    unread = tuple(name for name in columns if name not in StepEntry.model_fields)
    return steps_from({"steps": entries}, str(path))._replace(unread=unread)


def steps_from(document: object, source: str) -> StepsFile:
    """Read measured steps from a dictionary with the file's keys; `BadInput` lists every mistake.

    `source` names the dictionary in messages.
    """
    try:
        form, found, wrong = parse_model(StepsDocument, document, ("steps",))
    except BadInput as error:
        raise BadInput(*(f"{source}: {mistake}" for mistake in error.mistakes)) from None
    if not found and not form.steps:
        found.append("steps: found none; allowed: a list with one entry for each step")
    steps = list[MeasuredStep]()
    for at, entry in enumerate(form.steps or ()):
        place = f"steps[{at}]"
        if any(path == f"steps.{at}" or path.startswith(f"steps.{at}.") for path in wrong):
            continue
        mistakes = [*entry.missing(place), *_disagreeing(entry, place)]
        found += mistakes
        if not mistakes:
            steps.append(_step(entry, f"{source}: {place}"))
    if found:
        raise BadInput(*(f"{source}: {mistake}" for mistake in found))
    return StepsFile(tuple(steps), form.config, form.hardware)


def _cells(row: Mapping[str, str], source: str) -> dict[str, Any]:
    """Return the non-empty cells of a row, by column, as YAML reads them; spaces separate a cell's layers of stages.

    `source` names the row in messages.
    """
    given = {key: row[key].strip() for key in StepEntry.model_fields if key in row}
    return {
        key: read_yaml(f"[{', '.join(cell.split())}]" if key == "partition" else cell, f"{source}: {key}")
        for key, cell in given.items()
        if cell
    }


def _disagreeing(entry: StepEntry, place: str) -> list[str]:
    found = []
    if (entry.microbatches is None) == (entry.batch is None):
        found.append(f"{place}: found microbatches and batch {'both' if entry.batch else 'missing'}; allowed: one")
    share = entry.data * entry.microbatch_size
    if entry.batch is not None and entry.batch % share:
        found.append(f"{place}.batch: found {entry.batch}; allowed: a multiple of data * microbatch_size, {share}")
    if entry.recompute is None and entry.recomputed_layers:
        found.append(f"{place}.recompute: missing; it is required where layers are recomputed")
    stages = entry.pipeline * entry.chunks
    if entry.partition is not None and len(entry.partition) != stages:
        found.append(f"{place}.partition: found {len(entry.partition)} stages; allowed: pipeline * chunks, {stages}")
    return found


def _step(entry: StepEntry, place: str) -> MeasuredStep:
    assert entry.seconds is not None
    each = entry.microbatches or (entry.batch or 0) // (entry.data * entry.microbatch_size)
    sizes = tuple((name, getattr(entry, name)) for name in ("tensor", "context", "expert", "data"))
    return MeasuredStep(
        place, float(entry.seconds), sizes, entry.pipeline, entry.chunks, entry.microbatch_size, each, entry.sequence,
        entry.schedule, entry.recompute or "none", None if entry.partition is None else tuple(entry.partition),
    )  # fmt: skip
