"""Instances of the library: a problem or plan file, its source, and what is published of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipesched.errors import BadInput
from pipesched.files.plan_answers.problem_document import plan_document
from pipesched.files.plan_file import read_plan
from pipesched.files.problem_file import read_document, read_problem
from pipesched.files.problems.document import problem_document
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.problem import Problem

LIBRARY = Path(__file__).resolve().parents[2] / "library"
# Names of files in the folder of an instance, and of the one beside all instances of a source.
PROBLEM, PLAN, CARD, SOURCE = "problem.yaml", "plan.yaml", "instance.yaml", "source.yaml"
# Names, without endings, of the files that `--solve` writes.
OURS = ("schedule", "plan")
Read = TypeVar("Read", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Source(_Strict):
    """The paper or repository that instances come from."""

    title: str = Field(min_length=1)
    about: str = Field(min_length=1)
    url: str | None = Field(None, pattern=r"^https://\S+$")


class PublishedFigure(_Strict):
    """A published figure: a value of the objective in the file's time unit, or a bubble rate.

    Kinds: `computed` (a schedule's value for exactly these times), `formula` (a closed form of the source at this
    size), `simulated` (a published order whose value the source does not print: simulated here), `extrapolated` (from a
    shorter run), `measured` (a run on hardware, with all that the problem leaves out), `bound` (a published lower
    bound). Decimals are rounded to their last digit; whole numbers are exact. `schedule` names the published schedule
    here that takes this value.
    """

    by: str = Field(min_length=1)
    kind: Literal["computed", "formula", "simulated", "extrapolated", "measured", "bound"]
    value: int | Decimal | None = Field(None, gt=0)
    bubble: Decimal | None = Field(None, ge=0, lt=1)
    schedule: str | None = None
    note: str | None = None

    @model_validator(mode="after")
    def _one_figure(self) -> PublishedFigure:
        given = sum(figure is not None for figure in (self.value, self.bubble))
        if self.kind == "simulated":
            if given or self.schedule is None:
                raise ValueError("a simulated figure has a schedule, and no value: it is found here")
        elif given != 1:
            raise ValueError("found no value and no bubble, or both; allowed: one of the two")
        return self


class Card(_Strict):
    """Data of an instance: where it stands in its source, and the values published of it."""

    where: str = Field(min_length=1)
    published: tuple[PublishedFigure, ...] = ()
    note: str | None = None


@dataclass(frozen=True)
class Instance:
    """An instance, in the folder SOURCE/NAME of the library."""

    folder: Path
    source: Source
    card: Card

    @property
    def name(self) -> str:
        return f"{self.family}/{self.folder.name}"

    @property
    def family(self) -> str:
        """The folder of its source."""
        return self.folder.parent.name

    @property
    def is_plan(self) -> bool:
        """True if it asks for a plan of layers, not for an order of passes."""
        return (self.folder / PLAN).exists()

    @cached_property
    def problem(self) -> Problem | PlanProblem:
        """The problem as its file says; `BadInput` for what is none."""
        return read_plan(self.folder / PLAN) if self.is_plan else read_problem(self.folder / PROBLEM)

    @cached_property
    def document(self) -> dict[str, object]:
        """The problem without its name, in the words that schedule files use."""
        return asked(self.problem)

    @property
    def files(self) -> list[Path]:
        """Schedule files and answers of `plan`, `schedule.json` and `plan.json` first."""
        found = [path for path in self.folder.iterdir() if path.name.endswith((".json", ".json.gz"))]
        return sorted(found, key=lambda path: (path.name.split(".")[0] not in OURS, path.name))


def asked(problem: Problem | PlanProblem) -> dict[str, object]:
    """The problem without its name: equal for problems that have the same schedules with the same values."""
    document = problem_document(problem) if isinstance(problem, Problem) else plan_document(problem)
    return {key: value for key, value in document.items() if key != "name"}


def instances(library: Path = LIBRARY, only: str = "") -> list[Instance]:
    """All instances whose name contains the text, by source and name; `BadInput` lists every mistake in their files."""
    found: list[Instance] = []
    mistakes: list[str] = []
    for source in sorted(library.glob(f"*/{SOURCE}")):
        try:
            about = _read(Source, source)
        except BadInput as error:
            mistakes += error.mistakes
            continue
        for folder in sorted((path for path in source.parent.iterdir() if path.is_dir()), key=_in_numbers):
            if only not in f"{source.parent.name}/{folder.name}":
                continue
            try:
                one = Instance(folder, about, _read(Card, folder / CARD))
                if (folder / PLAN).exists() == (folder / PROBLEM).exists():
                    raise BadInput(f"{folder}: found none or both of {PROBLEM} and {PLAN}; allowed: one of the two")
                found.append(one)
            except BadInput as error:
                mistakes += error.mistakes
    if mistakes:
        raise BadInput(*mistakes)
    return found


def _in_numbers(folder: Path) -> list[tuple[int, str]]:
    """A key that sorts `exp2` before `exp10`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", folder.name)]


def _read(model: type[Read], path: Path) -> Read:
    """A small file; one line a mistake."""
    document = read_document(path)
    if isinstance(document, dict) and isinstance(document.get("published"), list):
        document = document | {"published": tuple(document["published"])}
    try:
        return model.model_validate(document)
    except ValidationError as error:
        lines = (f"{path}: {'.'.join(map(str, one['loc'])) or 'file'}: {one['msg']}" for one in error.errors())
        raise BadInput(*lines) from None
