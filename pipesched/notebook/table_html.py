"""Records as a table of HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from pipesched.problem.formatting import plain, visible

_MOST = 60  # rows; a longer table says how many more there are


def table_html(title: str, records: Sequence[Mapping[str, object]]) -> str:
    """A title and a row for each record, with the columns of the first; None is an empty cell."""
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
