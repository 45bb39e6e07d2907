"""The parts that a report's sections consist of, as HTML; all text in them is plain text."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pipesched.problem.formatting import visible
from pipesched.schedule.timeline import Timeline

_PAPER, _INK = "#15181c", "#e8eaed"  # of a dark page, as in page.css


def text(plain: str) -> str:
    """Return plain text as HTML, with control characters made visible."""
    return escape(visible(plain))


def sentences(plain: str) -> str:
    """Return plain text as HTML, with everything between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text(plain))


@dataclass(frozen=True)
class Paragraph:
    """A few sentences; what is between backticks is shown as code."""

    text: str

    def html(self) -> str:
        return f"<p>{sentences(self.text)}</p>"


@dataclass(frozen=True)
class Points:
    """A list of texts, a point each; what is between backticks is shown as code."""

    texts: Sequence[str]

    def html(self) -> str:
        return f"<ul>{''.join(f'<li>{sentences(one)}</li>' for one in self.texts)}</ul>"


@dataclass(frozen=True)
class Table:
    """Rows of text under headers, each header (text, True for a numeric column); `strong` are indices of bold rows."""

    headers: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    strong: Sequence[int] = ()

    def html(self) -> str:
        numeric = [number for _, number in self.headers]
        head = "".join(f"<th scope=col{_kind(number)}>{text(header)}</th>" for header, number in self.headers)
        rows = "".join(
            f"<tr{' class=strong' if place in self.strong else ''}>{self._cells(row, numeric)}</tr>"
            for place, row in enumerate(self.rows)
        )
        caption = f"<caption>{text(self.caption)}</caption>" if self.caption else ""
        return f"<div class=wide><table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"

    @staticmethod
    def _cells(row: Sequence[str], numeric: Sequence[bool]) -> str:
        first, *others = (f"{_kind(number, cell)}>{text(cell)}" for cell, number in zip(row, numeric, strict=True))
        return f"<th scope=row{first}</th>" + "".join(f"<td{cell}</td>" for cell in others)


@dataclass(frozen=True)
class Code:
    """Text shown as code: as it was typed, or to be typed."""

    text: str

    def html(self) -> str:
        return f"<pre tabindex=0><code>{text(self.text.rstrip().expandtabs(4))}</code></pre>"


@dataclass(frozen=True)
class Picture:
    """An SVG image, and its description for screen readers.

    It is embedded as an image, so that its ids stay separate.
    """

    svg: bytes
    shows: str

    def html(self) -> str:
        images = "".join(
            f'<img class="picture {theme}" alt="{text(self.shows)}" src="data:image/svg+xml;base64,{_base64(svg)}">'
            for theme, svg in (("light", self.svg), ("dark", dark(self.svg)))
        )
        return f"<div class=wide>{images}</div>"


def dark(svg: bytes) -> bytes:
    """Return a matplotlib SVG for a dark page: background, lines, text and dark greys change, other colours stay."""
    drawn = re.sub(r"(fill|stroke): (#[0-9a-f]{6}|white|black)", _at_night, svg.decode())
    return drawn.replace("<defs>", f"<style>text {{ fill: {_INK} }}</style>\n <defs>", 1).encode()


def _at_night(found: re.Match[str]) -> str:
    property_name, colour = found.groups()
    if colour in ("#ffffff", "white"):
        colour = _PAPER
    elif colour in ("#000000", "#262626", "#2b2b2b", "black"):
        colour = _INK
    elif colour[1:3] == colour[3:5] == colour[5:7] < "80":
        colour = "#" + f"{255 - int(colour[1:3], 16):02x}" * 3
    return f"{property_name}: {colour}"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@dataclass(frozen=True)
class Moment:
    """The best value and the lower bound of a search after `seconds`, both in the file's unit.

    The value is None before there is one. `phase` is what the search was doing.
    """

    seconds: float
    value: float | None
    lower_bound: float
    phase: str


@dataclass(frozen=True)
class Course:
    """A chart of best value and lower bound over the time of a search; at most one in a report.

    `what` and `unit` name the objective and its unit; `moments` are in the order of time, `end` is when the search
    ended, in seconds.
    """

    what: str
    unit: str
    moments: Sequence[Moment]
    end: float

    def html(self) -> str:
        return '<div id="course"></div>'

    def document(self) -> dict[str, object]:
        moments = [[one.seconds, one.value, one.lower_bound] for one in self.moments]
        return {"what": self.what, "unit": self.unit, "moments": moments, "end": self.end}


@dataclass(frozen=True)
class Schedules:
    """Timelines by name in one chart, which shows the first, and on demand another or two of them; one in a report."""

    timelines: Sequence[tuple[str, Timeline]]

    def html(self) -> str:
        return '<div id="schedules"></div>'


@dataclass(frozen=True)
class Folded:
    """Parts that are shown when the line above them is opened."""

    title: str
    parts: Sequence[Paragraph | Points | Table | Code]

    def html(self) -> str:
        return f"<details><summary>{text(self.title)}</summary>{''.join(part.html() for part in self.parts)}</details>"


Part = Folded | Paragraph | Points | Table | Code | Picture | Course | Schedules


@dataclass(frozen=True)
class Section:
    """A heading and the parts under it."""

    title: str
    parts: Sequence[Part]


_SHORT = 40  # characters of a cell of text that stays on one line; the table scrolls sideways instead


def _kind(number: bool, cell: str = "") -> str:
    if number:
        return " class=number"
    return " class=short" if len(cell) <= _SHORT and not cell.isalnum() and cell else ""
