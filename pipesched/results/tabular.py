"""Results that are tables: shown in notebooks, converted to data frames, and drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from html import escape
from importlib import import_module
from typing import Any

from pipesched.errors import BadInput
from pipesched.extras import to_install
from pipesched.picture import Picture, picture_of
from pipesched.problem.formatting import plain, visible

_MOST = 60  # rows; a longer table says how many more there are


def table_html(title: str, records: Sequence[Mapping[str, object]]) -> str:
    """Return HTML with a title and a row for each record, with the columns of the first record.

    None is an empty cell. Rows after the first `_MOST` are left out, and counted.
    """
    heads = list(records[0]) if records else []
    rows = [_row("td", [_text(record.get(head)) for head in heads]) for record in records[:_MOST]]
    more = f"<p>… and {len(records) - _MOST} rows more</p>" if len(records) > _MOST else ""
    head = _row("th", [one.replace("_", " ") for one in heads])
    return f'<div><p style="margin:4px 0">{escape(visible(title))}</p><table>{head}{"".join(rows)}</table>{more}</div>'


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(visible(cell))}</{tag}>' for cell in cells)}</tr>"


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return plain(value)
    return " ".join(_text(one) for one in value) if isinstance(value, list | tuple) else str(value)


def frame_of(records: Iterable[Mapping[str, Any]]) -> Any:
    """Return a `pandas.DataFrame` with a row for each record; `BadInput` if pandas is not installed.

    A figure that is a mapping, such as idle time by objective, becomes a column for each key: `idle_span`.
    """
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise BadInput(f"to_frame: found no pandas; allowed: after {to_install('pandas')}") from None
    rows = [*records]
    nested = {key for record in rows for key, value in record.items() if isinstance(value, Mapping)}
    return pandas.DataFrame([dict(_flat(record, nested)) for record in rows])


def _flat(record: Mapping[str, Any], nested: Set[str]) -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from ((f"{key}_{name}", one) for name, one in value.items())
        elif key not in nested:  # else the row has none of these figures
            yield key, value


class Tabular(ABC):
    """A result that is a table: `records` are its rows, in the file's units; `summary` is all of it in a line."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each row, from the name of a figure to its value."""

    @abstractmethod
    def summary(self) -> str:
        """Return what was found as one line of text for people."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.summary()}>"

    def _repr_html_(self) -> str:
        """Return the table as HTML for notebooks."""
        return table_html(self.summary(), self.records())

    def to_frame(self) -> Any:
        """Return the records as a `pandas.DataFrame`; `BadInput` if pandas is not installed."""
        return frame_of(self.records())

    def plot(self) -> Picture:
        """Return the picture that a notebook shows and that `save(PATH)` writes; `BadInput` if nothing was found."""
        return picture_of(self)
