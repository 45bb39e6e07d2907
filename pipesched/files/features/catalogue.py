"""The registry of features of problem files: `FEATURES`, to which each module of this package adds one `Feature`.

Users of the registry: the file's JSON Schema, reader and writer, the page of features that exclude each other, values
with units, the form of `serve`, state files, exporters, and execution by PyTorch's own pipeline runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args

from pydantic import create_model

from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import Refused
from pipesched.problem.problem import Problem
from pipesched.problem.stage import COMPUTE
from pipesched.registry import Registry


class FeatureKeys(Section):
    """Base class for the top-level keys that a feature adds to a problem file."""

    if TYPE_CHECKING:  # fields of the file
        devices: int | None
        microbatches: int | None


# The keys of a problem file, as attributes: an instance of the pydantic model that `with_features` makes of all keys,
# whose class type checkers do not know.
ProblemForm: TypeAlias = Any

# Numbers that are to become whole ticks or steps of memory: the name of their column, and one number or one a stage.
# A column whose name is text is the field of that name of `Stage`.
Column = tuple[Any, Fraction | list[Fraction]]


# Their whole ticks and steps, by column.
Columns = Mapping[Any, Sequence[int]]


class SeveralProblems(NamedTuple):
    """Reading and writing of a file that stands for several problems, such as one for each piece of a micro-batch.

    `documents` splits the file's document into one document for each problem, and returns a line for each mistake
    found; `join` combines the problems read from them into one. `written` is the inverse: given the joined problem and
    the function that writes a single problem, it returns the document of the file.
    """

    documents: Callable[[Mapping[str, Any]], tuple[list[object], list[str]]]
    join: Callable[[Sequence[Problem]], Problem]
    written: Callable[[Problem, Callable[[Problem], dict[str, Any]]], dict[str, Any]]


class Attached(NamedTuple):
    """A document read from a key of a file as a problem of its own, such as one module of a model.

    `path` is its key path in the file; `of` describes it (for instance a `Module`) to the function that joins it.
    """

    path: str
    of: Any
    document: Mapping[str, Any]


class JoinedProblem(NamedTuple):
    """Reading and writing of what a file means as a whole, once its pieces, modules and pipelines are joined.

    `lower` turns the joined problem into the one that the file means, given the form of the file's first problem.
    `without` is the inverse, before the problem is split for writing, and `written` returns the feature's keys, empty
    where the problem does not have it.
    """

    lower: Callable[[Problem, ProblemForm], Problem]
    without: Callable[[Problem], Problem]
    written: Callable[[Problem], Mapping[str, object]]


# A document with values of units as numbers in those of the document.
Plain = Callable[[Mapping[str, Any]], Any]


class AttachedProblems(NamedTuple):
    """Reading and writing of further problems under one key of a file, joined to the problem of its other keys.

    `documents` returns a document for each further problem, and a line for each mistake, from the key's value, the form
    of the other keys, the key paths known as wrong there, and the conversion of values with units. A device may have no
    stage in one of them; `idle` yields a mistake for a device that has none in any form. `join` combines the main
    problem with the others, each in a pair after its `Attached.of`. `written` returns the document of the joined
    problem, given the function that writes a single problem.
    """

    documents: Callable[[object, ProblemForm, WrongPaths, Plain], tuple[list[Attached], list[str]]]
    join: Callable[[Problem, Sequence[tuple[Any, Problem]]], Problem]
    idle: Callable[[ProblemForm, Sequence[ProblemForm]], Iterator[str]]
    written: Callable[[Problem, Callable[[Problem], dict[str, Any]]], dict[str, Any]]


def _no_mistakes(_form: ProblemForm, _stages: int | None, _wrong: WrongPaths) -> Iterator[str]:
    """Return no mistakes: the default for features without checks."""
    return iter(())


@dataclass(frozen=True)
class Feature:
    """A feature of problem files.

    `name` is the path of its first key. `keys` are its top-level keys and `sections` the keys that it adds to sections
    of the file, by section; `amend_schema` changes the JSON Schema where the types of keys do not say everything.
    `mistakes` yields a line for each broken rule, given the form, its number of stages (None if unknown), and the key
    paths already known as wrong. `per_stage` yields key paths, with values, whose lists must have one entry for a
    stage.

    `times`, `memory` and `limits` yield columns of exact numbers: durations, which become ticks together with all
    others of the file; amounts of memory, rounded down together with all others; and amounts in a number of the
    feature's own choice. From the columns in whole numbers `stages` makes fields of `Stage`, given the number of
    stages, and `fields` those of `Problem`. `lower` then turns the problem of all other keys into the one that the file
    means; the features of one file are lowered in the order of their names. `unlowered` is the inverse, for writing.
    `rewritten` changes other keys of the document, in plain numbers, before they are read. `several` is for files that
    stand for several problems, `attached` for files with further problems under a key, `joined` for what applies to
    all of them joined. `written` returns the feature's keys for a problem, empty where the problem does not have it;
    sections are merged with those of other features.
    `refused` lists the features that exclude this one, `with_units` the keys whose values may have units, `in_form`
    those with a field in the form of `serve`.

    A file has a feature if it gives one of its keys, a path in `given_by`, or the `objective` that is `asked_by`
    (`features_of`). Only then is the feature asked for anything of the file.

    A feature that is `once` adds passes that each stage runs once an iteration (`Stage.once`), and the objective is
    then the iteration; passes of several such features run in the order of the features' names.

    `present_in` is True for a problem that has the feature. Exporters that list it in their `features` can express it;
    `not_expressible` is the reason that the others give, empty where every format can express it. `has_state` is False
    where a state file does not say enough of an iteration under way, `runs_in_torch` where PyTorch's runtime cannot run
    it.
    """

    name: str
    keys: type[FeatureKeys] | None = None
    sections: Mapping[str, type[Section]] = field(default_factory=dict)
    amend_schema: Callable[[dict[str, Any]], None] = lambda _: None
    times: Callable[[ProblemForm], Iterator[Column]] = lambda _: iter(())
    memory: Callable[[ProblemForm], Iterator[Column]] = lambda _: iter(())
    limits: Callable[[ProblemForm], Iterator[tuple[Any, list[Fraction]]]] = lambda _: iter(())
    stages: Callable[[ProblemForm, Columns, int], Mapping[str, Sequence[Any]]] = lambda *_: {}
    fields: Callable[[Problem, ProblemForm, Columns], Mapping[str, Any]] = lambda *_: {}
    per_stage: Callable[[ProblemForm], Iterator[tuple[str, object]]] = lambda _: iter(())
    lower: Callable[[Problem, ProblemForm], Problem] = lambda problem, _: problem
    unlowered: Callable[[Problem], Problem] = lambda problem: problem
    several: SeveralProblems | None = None
    attached: AttachedProblems | None = None
    joined: JoinedProblem | None = None
    rewritten: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda document: document
    mistakes: Callable[[ProblemForm, int | None, WrongPaths], Iterator[str]] = _no_mistakes
    written: Callable[[Problem], Mapping[str, object]] = lambda _: {}
    refused: tuple[Refused, ...] = ()
    with_units: Mapping[str, QuantityKind] = field(default_factory=dict)
    in_form: tuple[str, ...] = ()
    given_by: tuple[str, ...] = ()
    asked_by: str | None = None
    present_in: Callable[[Problem], bool] = lambda _: False
    not_expressible: str = ""
    once: bool = False
    has_state: bool = True
    runs_in_torch: bool = True

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The key paths of which a file that has the feature gives one or more: name, keys, and those in `given_by`."""
        own = () if self.keys is None else self.keys.model_fields
        inside = (f"{at}.{key}" for at, keys in self.sections.items() for key in keys.model_fields)
        return (self.name, *own, *inside, *self.given_by)


FEATURES: Registry[Feature] = Registry("pipesched.files.features", "feature of problem files")


def features_of(document: object) -> list[Feature]:
    """Return the features that a file has, by its document, in the order of their names.

    None of them for a document that is no mapping.
    """
    if not isinstance(document, Mapping):
        return []
    given, objective = {*_paths(document)}, document.get("objective")
    return [
        feature
        for feature in FEATURES
        if not given.isdisjoint(feature.paths) or (feature.asked_by is not None and feature.asked_by == objective)
    ]


def _paths(section: Mapping[Any, Any], prefix: str = "") -> Iterator[str]:
    """Yield the paths of all keys of a document or section whose value is not null; `prefix` is its path, with a dot.

    A key that has a dot itself is left out.
    """
    for key, value in section.items():
        if value is not None and "." not in str(key):
            yield f"{prefix}{key}"
            if isinstance(value, Mapping):
                yield from _paths(value, f"{prefix}{key}.")


def excluded_pairs(features: Iterable[Feature] = FEATURES) -> tuple[Refused, ...]:
    """Return the pairs of keys that a problem file with these features may not have."""
    return tuple(row for feature in features for row in feature.refused)


def first_stream(form: ProblemForm) -> str:
    """Return the name of the file's first stream, which runs every task that names no stream."""
    return str((form.streams or [COMPUTE])[0])


def with_features(name: str, section: str, common: type[Section]) -> type[Section]:
    """Return the pydantic model, called `name`, of a section of the file with the keys of all features.

    `section` is empty for the file's top level. `common` has the section's keys that no feature adds. At the top level
    the sections of features have the keys that other features add to them.
    """
    own = (feature.sections.get(section) if section else feature.keys for feature in reversed([*FEATURES]))
    bases = dict.fromkeys((*(keys for keys in own if keys not in (None, FeatureKeys)), common))
    added = {key for feature in FEATURES for key in feature.sections} - {*common.model_fields}
    fields: dict[str, Any] = {}
    for key in sorted(added) if not section else ():
        given = next(keys.model_fields[key] for keys in bases if key in keys.model_fields)
        base = next(one for one in get_args(given.annotation) if issubclass(one, Section))
        fields[key] = with_features(f"{base.__name__}OfFile", key, base) | None, given
    return create_model(name, __base__=tuple(bases), __doc__=common.__doc__, **fields)


def refused_with_value(problem: Problem, key: str, value: str) -> Iterator[str]:
    """Yield a line for each feature of the problem that does not go with this value of a key, such as an objective."""
    for feature in FEATURES:
        for row in feature.refused:
            present = row.other.in_problem or (feature.present_in if row.other.key == feature.name else None)
            if (row.one.key, row.one.value) == (key, value) and present is not None and present(problem):
                yield row.line
