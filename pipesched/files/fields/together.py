"""Two features that a file may not have together: a row of a table, and the line that the reader gives for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pipesched.files.fields.field import as_list, whole_number


class Part(NamedTuple):
    """A part of a file: its key path, how messages call it, and whether a document has it; of one value also that."""

    key: str
    name: str
    there: Callable[[Mapping[str, Any]], bool]
    value: str = ""


class Refused(NamedTuple):
    """Two parts of a file, of which the key of the first is named as the mistake; what is allowed instead, and why."""

    one: Part
    other: Part
    allowed: str
    why: str

    @property
    def line(self) -> str:
        """The mistake as the reader says it."""
        found = f"{self.one.value} with" if self.one.value else "with"
        return f"{self.one.key}: found {found} {self.other.name}; allowed: {self.allowed}"


def at(document: Mapping[str, Any], path: str) -> Any:
    """The value at a key path; None where there is none."""
    held: Any = document
    for key in path.split("."):
        held = held.get(key) if isinstance(held, Mapping) else None
    return held


def given(path: str) -> Part:
    """Any value at a key path."""
    return Part(path, path, lambda document: at(document, path) is not None)


def more_than_one(path: str) -> Part:
    """A whole number above 1 at a key path."""
    return Part(path, path, lambda document: (whole_number(1)(at(document, path)) or 1) > 1)


def of_value(key: str, value: str) -> Part:
    """This value of a key."""
    return Part(key, f"{key} {value}", lambda document: document.get(key) == value, value)


def _repeats(document: Mapping[str, Any]) -> bool:
    layers = at(document, "tasks.layers")
    return any(one not in (None, 1) for one in as_list(layers) or [layers])


SEVERAL_LAYERS = Part("tasks.layers", "tasks.layers", _repeats)


def refused_together(table: Sequence[Refused], document: object, wrong: frozenset[str] = frozenset()) -> Iterator[str]:
    """A line for each row of which a document has both features, but for keys already known as wrong."""
    if isinstance(document, Mapping):
        for row in table:
            if not wrong & {row.one.key, row.other.key} and row.one.there(document) and row.other.there(document):
                yield row.line
