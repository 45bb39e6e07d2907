"""The axes of a sweep: the fields that change and their values, from a file's `sweep` section and from options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.schema_errors import shown
from pipesched.problem.placement import PLACEMENTS
from pipesched.sweeps.field_paths import full_path, steps_of
from pipesched.sweeps.values import MOST_CELLS, OfDevices, Value, label, values_from_text, values_of

# The one key of a `sweep` section that is no field.
SAME_MODEL = "same_model"
# A placement and its chunks in one word, as `interleaved x2`.
_WITH_CHUNKS = re.compile(rf"({'|'.join(PLACEMENTS)}) ?x(\d{{1,4}})", re.ASCII)


@dataclass(frozen=True)
class Axis:
    """A field that changes in a sweep: its name in tables, its key path, and its values in order.

    If the values are groups of settings, name and path are only the axis's label.
    """

    name: str
    path: str
    values: tuple[Value, ...]

    def document(self) -> dict[str, object]:
        """Return the axis as a JSON object of `field` (its name), `path` and `values`, each value as text."""
        return {"field": self.name, "path": self.path, "values": [one.label for one in self.values]}

    def content(self) -> list[object]:
        """Return everything that determines the axis's cells, for a hash."""
        return [
            self.name,
            self.path,
            [[one.label, [[path, _plain(value)] for path, value in one.settings]] for one in self.values],
        ]


@dataclass(frozen=True)
class Axes:
    """All axes of a sweep; with `same_model`, a cell with another number of stages has the same model, cut into those.

    Without it each of its stages has the file's times and memory.
    """

    axes: tuple[Axis, ...]
    same_model: bool = False

    def points(self) -> list[tuple[Value, ...]]:
        """Return the product of all axes' values, the last axis changing fastest.

        Each entry has one value of each axis, in their order.
        """
        return list(product(*(axis.values for axis in self.axes)))


def axes_of(document: Mapping[str, Any], options: Sequence[str], same_model: bool, source: str) -> Axes:
    """Return the axes of the `sweep` section of a file's document and of `--set FIELD=VALUES` options.

    The file's axes are first, in its order; an option replaces the file's axis of its field in its place. One model is
    cut into any number of stages (`Axes.same_model`) if `same_model` is True or the section has that key as true.
    `BadInput` for an entry or option that cannot be read, a field that appears twice in one of the two, no axis at all,
    or more than `MOST_CELLS` cells; `source` is the name of the file in messages.
    """
    section = document.get("sweep") or {}
    if not isinstance(section, Mapping):
        raise BadInput(f"{source}: sweep: found {shown(section)}; allowed: fields, each with its values")
    same = section.get(SAME_MODEL, False)
    if not isinstance(same, bool):
        raise BadInput(f"{source}: sweep.{SAME_MODEL}: found {shown(same)}; allowed: true, false")
    found: dict[str, Axis] = {}
    for field, given in section.items():
        if field != SAME_MODEL:
            where = f"{source}: sweep.{field}"
            _add(found, _axis(str(field), document, values_of(str(field), given, where)), where)
    chosen: dict[str, Axis] = {}
    for option in options:
        field, equals, text = option.partition("=")
        if not equals or not field.strip():
            raise BadInput(f"--set: found {option!r}; allowed: FIELD=VALUES, such as memory.capacity=4..16")
        where = f"--set {field}"
        _add(chosen, _axis(field.strip(), document, values_from_text(field.strip(), text, where)), where)
    axes = tuple((found | chosen).values())
    if not axes:
        allowed = "a `sweep` section in the file, or --set FIELD=VALUES, such as --set memory.capacity=4..16"
        raise BadInput(f"{source}: found nothing to sweep; allowed: {allowed}")
    cells = prod(len(axis.values) for axis in axes)
    if cells > MOST_CELLS:
        raise BadInput(f"{source}: sweep: found {cells} cells; allowed: up to {MOST_CELLS}")
    return Axes(axes, same or same_model)


def _add(axes: dict[str, Axis], axis: Axis, where: str) -> None:
    """Add an axis to `axes` by its path, in place.

    `BadInput`, which begins with `where`, for a path that is there already, as of a field under two names.
    """
    if axis.path in axes:
        raise BadInput(f"{where}: the field {axis.path} appears twice")
    axes[axis.path] = axis


def _axis(field: str, document: Mapping[str, Any], values: tuple[Value, ...]) -> Axis:
    """Return the axis of a field with full key paths.

    Short names are replaced as the kind of `document` (problem or plan) asks. If the values are groups of settings,
    which name their own fields, `field` is only the axis's label. `BadInput` for a setting whose field is no key path.
    """
    full = tuple(
        Value(one.label, tuple((full_path(path, document), value) for path, value in one.settings)) for one in values
    )
    for one in full:
        for path, _ in one.settings:
            steps_of(path)
    path_in_file = full_path(field, document)
    return Axis(field, path_in_file, tuple(map(_with_chunks, full)) if path_in_file == "placement" else full)


def _with_chunks(value: Value) -> Value:
    """Return a value such as `interleaved x2` as settings of placement and chunks; any other value unchanged."""
    found = _WITH_CHUNKS.fullmatch(value.label)
    if found is None or value.settings != (("placement", value.label),):
        return value
    return Value(value.label, (("placement", found[1]), ("chunks", int(found[2]))))


def _plain(value: object) -> object:
    return str(value) if isinstance(value, OfDevices) else label(value)
