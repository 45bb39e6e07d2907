"""Pairs of keys that exclude each other in a file, as rows of a table, and the mistake reported for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pipesched.files.fields.field import as_list, whole_number
from pipesched.files.fields.section import WrongPaths
from pipesched.problem.problem import Problem


class Part(NamedTuple):
    """One side of an excluded pair: a key, or one value of a key.

    `key` is the key's path, `name` its name in messages; `is_in` is True for a document that has it. `value` is given
    where only this value of the key is excluded, else empty. `in_problem` is True for a problem that has it; None: the
    test of the feature that the key belongs to.
    """

    key: str
    name: str
    is_in: Callable[[Mapping[str, Any]], bool]
    value: str = ""
    in_problem: Callable[[Problem], bool] | None = None


class Refused(NamedTuple):
    """A pair of parts that a file may not have together; the mistake names the key of `one`, and then `other`.

    `allowed` says what is possible instead, `why` gives the reason.
    """

    one: Part
    other: Part
    allowed: str
    why: str

    @property
    def line(self) -> str:
        """The line of the mistake: key of `one`, name of `other`, and what is allowed."""
        found = f"{self.one.value} with" if self.one.value else "with"
        return f"{self.one.key}: found {found} {self.other.name}; allowed: {self.allowed}"


def at(document: Mapping[str, Any], path: str) -> Any:
    """Return the value at a key path of a document, such as `times.forward`; None where there is none.

    The path has no list indices.
    """
    value: Any = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def given(path: str, in_problem: Callable[[Problem], bool] | None = None) -> Part:
    """Return the part (key and test) that a document has if the key at `path` has any value but null.

    `in_problem` is the test if a problem has it; None: that of the key's feature.
    """
    return Part(path, path, lambda document: at(document, path) is not None, in_problem=in_problem)


def more_than_one(path: str) -> Part:
    """Return the part (key and test) that a document has if the key at `path` is a whole number above 1."""
    return Part(path, path, lambda document: (whole_number(1)(at(document, path)) or 1) > 1)


def of_value(key: str, value: str) -> Part:
    """Return the part (key and test) that a document has if the top-level `key` has this value."""
    return Part(key, f"{key} {value}", lambda document: document.get(key) == value, value)


def _repeats(document: Mapping[str, Any]) -> bool:
    layers = at(document, "tasks.layers")
    return any(one not in (None, 1) for one in as_list(layers) or [layers])


OVERLAP_NEXT = Part("overlap_next", "overlap_next", lambda document: document.get("overlap_next") is True)
SEVERAL_LAYERS = Part("tasks.layers", "tasks.layers", _repeats)


def refused_together(table: Sequence[Refused], document: object, wrong: WrongPaths = frozenset()) -> Iterator[str]:
    """Yield a line for each row of the table whose two parts a document has, except for keys already known as wrong.

    The document has plain numbers. What an objective excludes is excluded as the second objective `then`, too.
    """
    if isinstance(document, Mapping):
        second = [row._replace(one=row.one._replace(key="then")) for row in table if row.one.key == "objective"]
        by_second = {**document, "objective": document.get("then")}
        for rows, asked in ((table, document), (second, by_second)):
            for row in rows:
                if not wrong & {row.one.key, row.other.key} and row.one.is_in(asked) and row.other.is_in(asked):
                    yield row.line
