"""A timeline as HTML for notebooks: a line of figures, the Gantt chart and its legend; no script or other file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

from pipesched.problem.formatting import amount, plain, size, visible
from pipesched.problem.pass_names import microbatch_number
from pipesched.problem.passes import PassKind
from pipesched.problem.problem import Problem
from pipesched.schedule.drawing.boxes import Box, boxes_of, makespan, row_shares
from pipesched.schedule.drawing.colours import NAMES, RGB, TRANSFER, hexadecimal, shade, shade_names, shade_numbers
from pipesched.schedule.drawing.round_times import round_times
from pipesched.schedule.drawing.svg import MOST_WITH_TIPS, Cell, svg
from pipesched.schedule.metrics import BUBBLE, IDLE, measure
from pipesched.schedule.timeline import Timeline

_TIMES = 9  # named on the axis, about


def timeline_html(timeline: Timeline) -> str:
    """Return the HTML of a timeline: a line with makespan, span, idle times and bubble rates, and the Gantt chart."""
    problem, metrics = timeline.problem, measure(timeline)

    def shares(by_objective: Mapping[str, float]) -> str:
        return ", ".join(f"{100 * share:.2f} % of {of}" for of, share in by_objective.items())

    line = (
        f"{timeline.schedule.name or 'schedule'} on {problem.name}: {size(problem)} · "
        f"makespan {amount(problem, metrics.makespan_ticks)}, span {amount(problem, metrics.span_ticks)} · "
        f"{IDLE} {shares(metrics.idles)} · {BUBBLE} {shares(metrics.bubbles)}"
    )
    return framed(line, timeline_svg(timeline))


def framed(line: str, picture: str) -> str:
    """Return HTML with a picture, which is HTML, under a line of plain text, which is escaped."""
    return f'<div><p style="margin:4px 0">{escape(visible(line))}</p>{picture}</div>'


def timeline_svg(timeline: Timeline) -> str:
    """Return the Gantt chart as SVG, followed by its legend as HTML.

    Boxes have tips if there are at most `MOST_WITH_TIPS`.
    """
    problem, whole = timeline.problem, makespan(timeline)
    boxes, shades = list(boxes_of(timeline)), shade_names(problem)
    colour_of = _colours(problem, len(shades))
    tip = _tips(problem) if len(boxes) <= MOST_WITH_TIPS else lambda _: ""
    cells = [
        Cell(
            box.start,
            box.end,
            box.top,
            box.bottom,
            colour_of(box),
            str(microbatch_number(problem, box.of)),
            tip(box),
        )
        for box in boxes
    ]
    unit = f" {visible(problem.time_unit)}" if problem.time_unit else ""
    times = round_times(0.0, problem.in_units(whole), _TIMES)
    ticks = [(time / float(problem.tick), f"{time:g}{'' if number else unit}") for number, time in enumerate(times)]
    description = f"Gantt chart: {len(timeline.schedule.columns)} passes, {size(problem)}"
    names = [f"device {device}" for device in range(problem.devices)]
    picture = svg(cells, names, float(whole), ticks, description, row_shares(problem))
    return picture + legend({box.of.kind for box in boxes}, shades, any(box.sends for box in boxes))


def _colours(problem: Problem, shades: int) -> Callable[[Box], RGB]:
    """Return the function for a box's colour: the hue is for its kind, the shade for its chunk or direction.

    `shades` is the number of shades.
    """
    numbers = shade_numbers(problem)
    colour_of = {(kind, s): shade(kind, number, shades) for s, number in enumerate(numbers) for kind in PassKind}
    return lambda box: TRANSFER if box.sends else colour_of[box.of.kind, box.of.stage]


def _tips(problem: Problem) -> Callable[[Box], str]:
    """Return the function for the text shown when a box is pointed at."""

    def tip(box: Box) -> str:
        name = f"{box.of}/{box.name}" if box.name else str(box.of)
        return visible(f"{name}: {plain(problem.in_units(box.start))} to {amount(problem, box.end)}")

    return tip


def legend(kinds: Iterable[PassKind], shades: Sequence[str], transfers: bool = False) -> str:
    """Return the legend as HTML: kinds of pass that occur with their colours, and shades if there are several.

    `shades` are their names, the strongest first. `transfers`: transfers occur, too.
    """
    found = {*kinds}
    entries: list[tuple[RGB, str]] = [(shade(kind, 0, 1), name) for kind, name in NAMES.items() if kind in found]
    entries += [(TRANSFER, "Transfer to another device")] if transfers else []
    square = "display:inline-block;width:10px;height:10px;margin:0 4px 0 12px;background:"
    text = "".join(f'<span style="{square}{hexadecimal(colour)}"></span>{escape(name)}' for colour, name in entries)
    more = f" · shades, strong to pale: {', '.join(shades)}" if len(shades) > 1 else ""
    return f'<p style="margin:4px 0;font-size:12px">{text}{more}</p>'
