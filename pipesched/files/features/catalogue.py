"""The registry of features of problem files: each module of this package registers one.

The schema of the file, its reader and writer, the page of what does not go together, values with units, the form of
`serve`, states, exporters and PyTorch's jobs read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipesched.files.fields.kind import Kind
from pipesched.files.fields.section import Section
from pipesched.files.fields.together import Refused
from pipesched.problem.problem import Problem
from pipesched.registry import Registry


class FeatureKeys(Section):
    """The keys of a feature, in a file that has those of every problem too."""

    if TYPE_CHECKING:  # fields of the file
        devices: int | None
        microbatches: int | None


def _no_mistakes(_form: Any, _stages: int | None, _wrong: frozenset[str]) -> Iterator[str]:
    """None."""
    return iter(())


@dataclass(frozen=True)
class Feature:
    """A feature of problem files.

    `name` is its first key. `keys` are a part of the file, at its top. `mistakes` gets the file, its number of stages,
    None where it is unknown, and the key paths that are known as wrong; it gives a line for each broken rule. `lower`
    makes of the problem of all other keys the one that the file means; of two features in one file the first by name
    is lowered first. `written` are the keys of a problem, none where it does not have the feature. `refused` are the
    features that it does not go with, `with_units` the keys whose values may have units, `in_form` those with a field
    on the page of `serve`.

    `there` says whether a problem has the feature. Exporters that have it in their `features` can express it;
    `not_expressible` is the reason of the others, empty where every format can. `has_state` is false where a state does
    not say enough of an iteration under way, `runs_in_torch` where PyTorch's own runtime cannot run it.
    """

    name: str
    keys: type[FeatureKeys]
    lower: Callable[[Problem, Any], Problem]
    mistakes: Callable[[Any, int | None, frozenset[str]], Iterator[str]] = _no_mistakes
    written: Callable[[Problem], Mapping[str, object]] = lambda _: {}
    refused: tuple[Refused, ...] = ()
    with_units: Mapping[str, Kind] = field(default_factory=dict)
    in_form: tuple[str, ...] = ()
    there: Callable[[Problem], bool] = lambda _: False
    not_expressible: str = ""
    has_state: bool = True
    runs_in_torch: bool = True


FEATURES: Registry[Feature] = Registry("pipesched.files.features", "feature of problem files")


def refused_with_value(problem: Problem, key: str, value: str) -> Iterator[str]:
    """A line for each feature of the problem that does not go with this value of a key."""
    for feature in FEATURES:
        rows = (row for row in feature.refused if (row.one.key, row.one.value) == (key, value))
        yield from (row.line for row in rows if feature.there(problem) and row.other.key == feature.name)
