"""The cells of a sweep: each is a whole problem or plan with its values set, or the reason why there is none."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.batch_sizes import with_axis_of_sizes
from pipesched.files.exact_numbers import write_json
from pipesched.files.file_names import stem_of
from pipesched.files.other_kinds import FileKind, kind_of
from pipesched.files.plan_answers.problem_document import plan_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from, read_document
from pipesched.files.problems import visualiser_file
from pipesched.files.problems.document import problem_document
from pipesched.files.schema_errors import shown, with_text_keys
from pipesched.layers.cluster import Capacities
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.objective import Leaves
from pipesched.problem.problem import Problem
from pipesched.sweeps.axes import Axes, axes_of
from pipesched.sweeps.field_paths import CAPACITY, is_plan, set_field, without_field
from pipesched.sweeps.same_model import with_same_model
from pipesched.sweeps.values import OfDevices, Value, resolved

# What a placement other than these decides by itself.
_CHUNKED = ("interleaved", "wave")


@dataclass(frozen=True)
class Cell:
    """A cell of a sweep: its number from 0, its values, and its document with the keys of a file.

    `at` has pairs of axis name and value, a group of settings by its name. `name` is that of the sweep. If the document
    is no valid problem, `refused` is the reason, a line for each mistake, `document` is empty, and `problem` and all
    that needs it raise `BadInput`. `key` identifies the problem, `family` the problem without the capacities of its
    devices.
    """

    number: int
    at: tuple[tuple[str, object], ...]
    document: Mapping[str, Any]
    name: str
    refused: str = ""

    @cached_property
    def problem(self) -> Problem | PlanProblem:
        """The problem of the cell, by the name in its document, or else the name of the sweep."""
        return problem_of(self.document, self.name)

    @cached_property
    def key(self) -> str:
        """A hash of everything that determines the best schedule or plan; names do not count."""
        return content_key(self.problem)

    @cached_property
    def family(self) -> str:
        """A hash that is equal for cells that differ only in `memory.capacity`.

        It also depends on the capacities if the problem has notes, such as that numbers were rounded, since rounding
        may depend on them, and if free memory is maximised, since schedules leave other amounts with other capacities.
        """
        alike = _sorted(without_field(without_field(self.document, CAPACITY), "name"))
        own = self.capacities if self.problem.notes or leaves_of(self.problem) is not None else ()
        return sha256(f"{write_json(alike)}{own}".encode()).hexdigest()

    @cached_property
    def capacities(self) -> Capacities:
        """The whole memory of each device in the file's unit, exact; None for a device without limit."""
        problem = self.problem
        if isinstance(problem, PlanProblem):
            return problem.cluster.capacity or (None,) * problem.cluster.devices
        return tuple(None if pool.capacity is None else pool.capacity * problem.resolution for pool in problem.pools)

    @property
    def place(self) -> dict[str, object]:
        """The cell's values (`at`) as a dictionary by axis name."""
        return dict(self.at)


@dataclass(frozen=True)
class Sweep:
    """A sweep: its name, axes, all cells of their product, and the file's document with the section `sweep`.

    The cells are in the order of `Axes.points`, cell n at index n, with those that were refused.
    """

    name: str
    axes: Axes
    cells: tuple[Cell, ...]
    document: Mapping[str, Any]

    @cached_property
    def key(self) -> str:
        """A hash that is equal for the same axes with the same cells in the same order."""
        content = [axis.content() for axis in self.axes.axes], [cell.refused or cell.key for cell in self.cells]
        return sha256(json.dumps(content, default=str).encode()).hexdigest()

    @property
    def of_plans(self) -> bool:
        return is_plan(self.document)

    @property
    def of_batch(self) -> bool:
        """True if all cells are iterations of the same batch, so that the least value is the best."""
        return self.document.get("batch") is not None

    def chain_lengths(self) -> list[int]:
        """The numbers of stages in the first chain of valid cells of problems, each once, ascending.

        Empty for plans.
        """
        problems = (cell.problem for cell in self.cells if not cell.refused)
        chains = (p.placement.chains for p in problems if isinstance(p, Problem))
        return sorted({len(found[0]) for found in chains})


def read_sweep(
    path: str | Path,
    options: Sequence[str] = (),
    same_model: bool = False,
    objective: str | None = None,
    values: Mapping[str, object] | None = None,
) -> Sweep:
    """Read the sweep of a problem or plan file.

    `options` are those of `--set`, as `FIELD=VALUES`. `same_model` keeps the model's layers where the stages change.
    `objective`, if given, replaces the file's. `values` are further fields with their values, in addition to the file's
    `sweep` section; they replace its entries of the same name. `BadInput` if the file cannot be read, its axes are
    wrong, or no cell of it is valid.
    """
    document = read_document(path)
    if not isinstance(document, dict):
        raise BadInput(f"{path}: found {shown(document)}; allowed: a problem file or a plan file")
    if document.get("format") == "pipesched-schedule":
        raise BadInput(f"{path}: found a schedule file; allowed: a problem file or a plan file")
    if kind_of(document) is FileKind.VISUALISER:
        document = visualiser_file.to_problem_document(document, str(path))
    if objective is not None:
        document = document | {"objective": objective}
    return sweep_of(with_values(document, values), options, same_model, str(path), stem_of(path))


def with_values(document: Mapping[str, Any], values: Mapping[str, object] | None) -> Mapping[str, Any]:
    """Return the document with the fields `values` added to its `sweep` section, each with its values.

    They replace entries of the same name. Itself if `values` is None or empty.
    """
    return {**document, "sweep": {**(document.get("sweep") or {}), **values}} if values else document


def sweep_of(
    document: Mapping[str, Any],
    options: Sequence[str] = (),
    same_model: bool = False,
    source: str = "sweep",
    default_name: str = "sweep",
) -> Sweep:
    """Return the sweep of a document with the keys of a problem or plan file.

    `options` are those of `--set`, as `FIELD=VALUES`; `same_model` keeps the model's layers where the stages change.
    `source` names the document in messages; the sweep's name is the document's, or else `default_name`. `BadInput` if
    its axes are wrong or no cell is valid, then with the mistakes of the first cell.
    """
    document = with_text_keys(with_axis_of_sizes(document, source))
    axes = axes_of(document, options, same_model, source)
    base = without_field(document, "sweep")
    name = str(base.get("name") or default_name)
    cells = tuple(_cell(n, point, axes, base, name) for n, point in enumerate(axes.points()))
    if all(cell.refused for cell in cells):
        raise BadInput(*(f"{source}: {line}" for line in cells[0].refused.split("\n")))
    return Sweep(name, axes, cells, document)


def problem_of(document: Mapping[str, Any], name: str) -> Problem | PlanProblem:
    """Return the problem or plan problem of a document, with this name if the document has none.

    `BadInput` lists every mistake, in lines that may begin with `cell: `.
    """
    return (plan_problem_from if is_plan(document) else problem_from)(document, "cell", name)


def leaves_of(problem: Problem | PlanProblem) -> Leaves | None:
    """Return the kind of free memory that a problem maximises first; None for an objective of time alone."""
    return problem.leaves if isinstance(problem, PlanProblem) else problem.objective.leaves


def content_key(problem: Problem | PlanProblem) -> str:
    """Return a hash of the problem to be solved, from the document that states it exactly; names do not count.

    Keys of files stay as they are where names in the code change, and are sorted here, so that a store finds its
    results again. ValueError if no file can express the problem.
    """
    document = plan_document(problem) if isinstance(problem, PlanProblem) else problem_document(problem)
    return sha256(write_json(_sorted(without_field(document, "name"))).encode()).hexdigest()


def _cell(number: int, point: Sequence[Value], axes: Axes, base: dict[str, Any], name: str) -> Cell:
    changed = copy.deepcopy(base)
    try:
        _set_all(changed, point)
        at = _place(point, axes, changed.get("devices"))
        if axes.same_model and not is_plan(base):
            with_same_model(base, changed)
        cell = Cell(number, at, changed, name)
        _ = cell.problem  # raises where the values do not go together
        return cell
    except BadInput as error:
        refused = "\n".join(line.removeprefix("cell: ") for line in error.mistakes)
        return Cell(number, _place(point, axes, changed.get("devices")), {}, name, refused)


def _set_all(changed: dict[str, Any], point: Sequence[Value]) -> None:
    """Set the values of a cell in its document `changed`, in place, multiples of the number of devices last.

    `point` has one value of each axis. Where an axis of a problem sets a placement that fixes its chunks, the key
    `chunks` is dropped unless an axis sets it too. `BadInput` for a path that the document cannot have, and for a
    multiple without a number of devices.
    """
    settings = [setting for value in point for setting in value.settings]
    for path, value in settings:
        if not isinstance(value, OfDevices):
            set_field(changed, path, with_text_keys(value))
    for path, value in settings:
        if isinstance(value, OfDevices):
            set_field(changed, path, resolved(value, changed.get("devices")))
    paths = {path for path, _ in settings}
    fixed = changed.get("placement") not in _CHUNKED and not is_plan(changed)
    if fixed and "placement" in paths and "chunks" not in paths:
        changed.pop("chunks", None)


def _place(point: Sequence[Value], axes: Axes, devices: object) -> tuple[tuple[str, object], ...]:
    """Return the pairs of axis name and value of a cell, one for each axis.

    `point` is one value of each axis, in their order; groups of settings are represented by their names, and so are
    multiples of the number of devices if `devices` is no int.
    """
    at: list[tuple[str, object]] = []
    for axis, value in zip(axes.axes, point, strict=True):
        single = [one for path, one in value.settings if path == axis.path and len(value.settings) == 1]
        known = bool(single) and (isinstance(devices, int) or not isinstance(single[0], OfDevices))
        at.append((axis.name, resolved(single[0], devices) if known else value.label))
    return tuple(at)


def _sorted(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: _sorted(document[key]) for key in sorted(document)}
    return [_sorted(one) for one in document] if isinstance(document, list | tuple) else document
