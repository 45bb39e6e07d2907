"""The registry of features of problem files: each module of this package registers one.

The schema of the file, its reader and writer, the page of what does not go together, values with units, the form of
`serve`, states, exporters and PyTorch's jobs read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import create_model

from pipesched.files.fields.kind import Kind
from pipesched.files.fields.section import Section
from pipesched.files.fields.together import Refused
from pipesched.problem.problem import Problem
from pipesched.problem.stage import COMPUTE
from pipesched.registry import Registry


class FeatureKeys(Section):
    """The keys of a feature, in a file that has those of every problem too."""

    if TYPE_CHECKING:  # fields of the file
        devices: int | None
        microbatches: int | None


# Numbers that are to become whole ticks or steps of memory: the name of their column, and one number or one a stage.
# A column whose name is text is the field of that name of `Stage`.
Column = tuple[Any, Fraction | list[Fraction]]


# Their whole ticks and steps, by column.
Columns = Mapping[Any, Sequence[int]]


class SeveralProblems(NamedTuple):
    """A file that several documents stand for, each read by itself, whose problems are then joined.

    `documents` gives these of a document that has the feature's key, with a line for each mistake; `join` makes the
    problem of theirs, and `written` the document of that problem, where its argument writes the one of any other.
    """

    documents: Callable[[Mapping[str, Any]], tuple[list[object], list[str]]]
    join: Callable[[Sequence[Problem]], Problem]
    written: Callable[[Problem, Callable[[Problem], dict[str, Any]]], dict[str, Any]]


class Attached(NamedTuple):
    """A document that a file has besides that of its other keys, the path of its keys there, and what it is of."""

    path: str
    of: Any
    document: Mapping[str, Any]


# A document with values of units as numbers in those of the document.
Plain = Callable[[Mapping[str, Any]], Any]


class AttachedProblems(NamedTuple):
    """Documents under a key of a file, each read by itself, whose problems are joined to that of the other keys.

    `documents` gives these of the key's value, the form of the other keys and the key paths that are wrong there, with
    a line for each mistake; some devices may hold no stage in each of them. `idle` gives a line where a
    device holds none in any of the forms. `join` makes the problem of that of the other keys and these, and `written`
    the document of that problem, where its argument writes the one of any other.
    """

    documents: Callable[[object, Any, frozenset[str], Plain], tuple[list[Attached], list[str]]]
    join: Callable[[Problem, Sequence[tuple[Any, Problem]]], Problem]
    idle: Callable[[Any, Sequence[Any]], Iterator[str]]
    written: Callable[[Problem, Callable[[Problem], dict[str, Any]]], dict[str, Any]]


def _no_mistakes(_form: Any, _stages: int | None, _wrong: frozenset[str]) -> Iterator[str]:
    """None."""
    return iter(())


@dataclass(frozen=True)
class Feature:
    """A feature of problem files.

    `name` is its first key, or the path of it. `keys` are a part of the file, at its top, `sections` parts
    of its sections; `amend_schema` changes the JSON Schema of the whole file where types of keys do not say all.
    `mistakes` gets the file, its number of stages, None where it is unknown, and the key paths that are known as wrong;
    it gives a line for each broken rule. `per_stage` are the key paths whose lists have one entry a stage, with their
    values.

    `times` gives durations, which become ticks with all others of the file, `memory` amounts, rounded downwards with
    all others, and `limits` amounts of which there are as many as the feature says. Of these columns in whole numbers
    `stages` makes fields of stages, given how many there are, and `fields` those of the problem. `lower` then makes of
    the problem of all other keys the one that the file means; of two features in one file the first by name is lowered
    first, and `unlowered` gives the problem that other keys are written of. `rewritten` changes other keys of a
    document, in plain numbers, before they are read. `several` is for a file that stands for several problems,
    `attached` for one with others besides its own. `written` are the keys of a problem, none where it does not have the
    feature; a section is merged into that of all problems. `refused` are the features that it does not go with,
    `with_units` the keys whose values may have units, `in_form` those with a field
    on the page of `serve`.

    With a feature that is `once` stages run passes once an iteration (`Stage.once`), which is then the objective; those
    of several features run in the order of their names.

    `there` says whether a problem has the feature. Exporters that have it in their `features` can express it;
    `not_expressible` is the reason of the others, empty where every format can. `has_state` is false where a state does
    not say enough of an iteration under way, `runs_in_torch` where PyTorch's own runtime cannot run it.
    """

    name: str
    keys: type[FeatureKeys] | None = None
    sections: Mapping[str, type[Section]] = field(default_factory=dict)
    amend_schema: Callable[[dict[str, Any]], None] = lambda _: None
    times: Callable[[Any], Iterator[Column]] = lambda _: iter(())
    memory: Callable[[Any], Iterator[Column]] = lambda _: iter(())
    limits: Callable[[Any], Iterator[tuple[Any, list[Fraction]]]] = lambda _: iter(())
    stages: Callable[[Any, Columns, int], Mapping[str, Sequence[Any]]] = lambda *_: {}
    fields: Callable[[Problem, Any, Columns], Mapping[str, Any]] = lambda *_: {}
    per_stage: Callable[[Any], Iterator[tuple[str, object]]] = lambda _: iter(())
    lower: Callable[[Problem, Any], Problem] = lambda problem, _: problem
    unlowered: Callable[[Problem], Problem] = lambda problem: problem
    several: SeveralProblems | None = None
    attached: AttachedProblems | None = None
    rewritten: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda document: document
    mistakes: Callable[[Any, int | None, frozenset[str]], Iterator[str]] = _no_mistakes
    written: Callable[[Problem], Mapping[str, object]] = lambda _: {}
    refused: tuple[Refused, ...] = ()
    with_units: Mapping[str, Kind] = field(default_factory=dict)
    in_form: tuple[str, ...] = ()
    there: Callable[[Problem], bool] = lambda _: False
    not_expressible: str = ""
    once: bool = False
    has_state: bool = True
    runs_in_torch: bool = True


FEATURES: Registry[Feature] = Registry("pipesched.files.features", "feature of problem files")


def first_stream(form: Any) -> str:
    """The stream that runs what names no other."""
    return str((form.streams or [COMPUTE])[0])


def with_features(name: str, section: str, common: type[Section]) -> type[Section]:
    """The model of a section, empty for the file: its keys of all problems, then those of features."""
    own = (feature.sections.get(section) if section else feature.keys for feature in reversed([*FEATURES]))
    bases = dict.fromkeys((*(keys for keys in own if keys not in (None, FeatureKeys)), common))
    return create_model(name, __base__=tuple(bases), __doc__=common.__doc__)


def refused_with_value(problem: Problem, key: str, value: str) -> Iterator[str]:
    """A line for each feature of the problem that does not go with this value of a key."""
    for feature in FEATURES:
        rows = (row for row in feature.refused if (row.one.key, row.one.value) == (key, value))
        yield from (row.line for row in rows if feature.there(problem) and row.other.key == feature.name)
