"""A Gantt chart as a self-contained SVG for notebooks; its text has the colour of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

from pipesched.schedule.drawing.colours import EDGE, RGB, hexadecimal, ink_on
from pipesched.schedule.drawing.sampling import sampled

WIDTH = 760  # of the picture, in its own units; it shrinks with the page
NAMES = 72  # of them for the rows' names
ROW = 22
AXIS = 18
DIGIT = 6.5  # the width of a digit of the numbers in boxes
MOST_WITH_TIPS = 1500  # boxes that are elements of their own, each with a tip
MOST_CELLS = 12_000  # samples of all rows together where there are more boxes than that


class Cell(NamedTuple):
    """One box: from `start` to `end` in the chart's own time, from `top` to `bottom` in rows.

    `number` is the text in the box if it is wide enough, `tip` that shown when the pointer is on it.
    """

    start: float
    end: float
    top: float
    bottom: float
    colour: RGB
    number: str = ""
    tip: str = ""


@dataclass(frozen=True)
class _Frame:
    """The conversion of times and rows to coordinates of the picture.

    They are `scale` units for a unit of time, `row` for a row.
    """

    scale: float
    row: float

    def x(self, time: float) -> float:
        return NAMES + time * self.scale

    def box(self, cell: Cell) -> tuple[float, float, float, float]:
        """Return left, top, width and height of a box.

        All in units of the picture's `viewBox`.
        """
        return self.x(cell.start), cell.top * self.row, (cell.end - cell.start) * self.scale, self._high(cell)

    def holds_number(self, cell: Cell) -> bool:
        wide = (cell.end - cell.start) * self.scale
        return bool(cell.number) and wide >= DIGIT * len(cell.number) + 2 and self._high(cell) >= 8

    def letters(self, cell: Cell) -> float:
        """Return the font size of the number in a box.

        In units of the picture's `viewBox`.
        """
        return min(11.0, round(self._high(cell)))

    def _high(self, cell: Cell) -> float:
        return (cell.bottom - cell.top) * self.row


def svg(
    cells: Sequence[Cell],
    rows: Sequence[str],
    length: float,
    times: Iterable[tuple[float, str]],
    description: str,
    high: float = 1.0,
) -> str:
    """Return the picture as SVG text.

    It has named rows with their boxes (`cells`), and an axis with labels: `times` are pairs (time, label). `length` is
    the time at the right edge. `high` is the height of rows relative to the usual one; `description` is the description
    for screen readers. Tips are left out above 1,500 boxes; more than 12,000 are merged, and lose numbers and tips.
    """
    frame = _Frame((WIDTH - NAMES) / (length or 1), ROW * high)
    height = frame.row * len(rows)
    drawn = cells if len(cells) <= MOST_CELLS else _sampled(cells, len(rows), length)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height + AXIS:g}" width="{WIDTH}" role="img" '
        f'aria-label="{escape(description)}" style="max-width:100%;height:auto;font:11px sans-serif">',
        *_names(rows, frame),
        *_axis(((frame.x(time), name) for time, name in times), height),
        *(_with_tips(drawn, frame) if len(drawn) <= MOST_WITH_TIPS else _as_paths(drawn, frame)),
        *_numbers(drawn, frame),
        "</svg>",
    ]
    return "".join(parts)


def _names(rows: Sequence[str], frame: _Frame) -> Iterator[str]:
    for row, name in enumerate(rows):
        yield (
            f'<text x="{NAMES - 6}" y="{frame.row * (row + 0.5):g}" text-anchor="end" dominant-baseline="central" '
            f'fill="currentColor">{escape(name)}</text>'
        )


def _axis(times: Iterable[tuple[float, str]], height: float) -> Iterator[str]:
    for at, name in times:
        yield f'<path d="M{at:.1f} 0V{height + 4:g}" stroke="currentColor" stroke-opacity=".25" fill="none"/>'
        anchor = "start" if at <= NAMES else "end" if at > WIDTH - 30 else "middle"
        yield (
            f'<text x="{at:.1f}" y="{height + 14:g}" text-anchor="{anchor}" fill="currentColor">{escape(name)}</text>'
        )


def _with_tips(cells: Iterable[Cell], frame: _Frame) -> Iterator[str]:
    yield f'<g stroke="{EDGE}">'
    for (colour, line), group in _grouped(cells, lambda cell: (cell.colour, _line(cell, frame))):
        yield f'<g fill="{hexadecimal(colour)}" stroke-width="{line}">'
        for cell in group:
            x, y, w, h = frame.box(cell)
            shape = f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}">'
            yield f"{shape}<title>{escape(cell.tip)}</title></rect>"
        yield "</g>"
    yield "</g>"


def _line(cell: Cell, frame: _Frame) -> str:
    """Return the width of a box's outline in units of the picture's `viewBox`, finer where boxes are narrow."""
    return f"{min(0.6, 0.06 * frame.box(cell)[2]):.1g}"


def _as_paths(cells: Iterable[Cell], frame: _Frame) -> Iterator[str]:
    """Yield one path for all boxes of a colour, which is short."""
    for colour, group in _grouped(cells, lambda cell: cell.colour):
        path = "".join(f"M{x:.1f} {y:.1f}h{w:.1f}v{h:.1f}h-{w:.1f}z" for x, y, w, h in map(frame.box, group))
        yield f'<path d="{path}" fill="{hexadecimal(colour)}" stroke="{EDGE}" stroke-width=".1"/>'


def _numbers(cells: Iterable[Cell], frame: _Frame) -> Iterator[str]:
    """Yield the numbers in the boxes that are wide enough, grouped by text colour."""
    numbered = filter(frame.holds_number, cells)
    for (ink, high), group in _grouped(numbered, lambda cell: (ink_on(cell.colour), frame.letters(cell))):
        texts = (
            f'<text x="{x + w / 2:.1f}" y="{y + h / 2:.1f}">{escape(cell.number)}</text>'
            for cell in group
            for x, y, w, h in (frame.box(cell),)
        )
        style = 'text-anchor="middle" dominant-baseline="central" pointer-events="none"'
        yield f'<g fill="{ink}" font-size="{high:g}" {style}>{"".join(texts)}</g>'


def _grouped(cells: Iterable[Cell], key: Callable[[Cell], Any]) -> Iterator[tuple[Any, Iterator[Cell]]]:
    return groupby(sorted(cells, key=key), key=key)


def _sampled(cells: Sequence[Cell], rows: int, length: float) -> list[Cell]:
    """Merge boxes until there are no more than can be seen: each lane is sampled in columns of equal time.

    Adjacent columns of one colour become one box. There are `rows` rows from time 0 to `length`.
    """
    lanes: dict[tuple[float, float], list[Cell]] = {}
    for cell in cells:
        lanes.setdefault((cell.top, cell.bottom), []).append(cell)
    columns = max(60, min(WIDTH - NAMES, MOST_CELLS // max(rows, len(lanes))))
    width, found = length / columns, []
    for (top, bottom), lane in lanes.items():
        at = 0
        for colour, run in groupby(sampled(((c.start / width, c.end / width, c.colour) for c in lane), columns)):
            until = at + len(list(run))
            found += [] if colour is None else [Cell(at * width, until * width, top, bottom, colour)]
            at = until
    return found
