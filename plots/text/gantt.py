"""The Gantt chart made of characters, for terminals: a row for each device and stream, in a given width."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from statistics import quantiles
from textwrap import wrap

from pipesched.problem.formatting import plain as number_text
from pipesched.problem.pass_names import microbatch_number
from pipesched.problem.passes import BW, RECOMPUTATIONS, B, PassKind
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.drawing.boxes import Box, boxes_of, makespan
from pipesched.schedule.drawing.colours import NAMES, RGB, TRANSFER, shade, shade_names, shade_numbers
from pipesched.schedule.timeline import Timeline
from plots.drawing.zoom import Window
from plots.text.cells import IDLE, Mark, in_proportion, labelled
from plots.text.line import Line, Piece
from plots.text.scale import Scale, axis, scale_of

LEAST = 20  # columns that still tell something
_NARROW = 2  # columns of the narrowest tenth of the boxes from which on each box is drawn


def text_gantt(timeline: Timeline, columns: int, coloured: bool, window: Window | None = None) -> list[Line]:
    """Return the lines of the chart, none longer than `columns`; `coloured` if the terminal shows the pieces' colours.

    Lines are longer only where `columns` are few, since at least `LEAST` columns of time are drawn. Empty if no box is
    in the window (ticks; None: all of the time). Each box has its pass where it is wide enough; where boxes are too
    narrow, a column shows a kind of pass that runs in it, chosen so that letters are in proportion to time.
    """
    problem, whole = timeline.problem, makespan(timeline)
    since, until = window or (0.0, float(whole))
    boxes = [box for box in boxes_of(timeline) if max(box.start, since) < min(box.end, until)]
    if not boxes:
        return []
    rows = _row_names(problem, {box.stream for box in boxes})
    left = max(map(len, rows.values())) + 1
    scale = scale_of(boxes, (since, until), max(LEAST, columns - left))
    letters = _letters(boxes)
    draw = labelled if _wide(boxes, scale) else in_proportion
    marks = _marks(problem, boxes, letters)
    lines = [(Piece(name.ljust(left)), *draw(marks.get(row, []), scale, coloured)) for row, name in rows.items()]
    unit = problem.time_unit[: left - 1]
    lines.append((Piece(unit.ljust(left)), Piece(axis(scale, float(problem.tick)))))
    return [*lines, *_legend(problem, boxes, letters, scale if draw is in_proportion else None, columns, coloured)]


def _row_names(problem: Problem, used: Container[str]) -> dict[tuple[DeviceId, str], str]:
    """Return the names of rows by (device, stream), from top to bottom; streams that are not in `used` are left out."""
    devices, streams = range(problem.devices), [stream for stream in problem.streams if stream in used]
    if len(problem.streams) == 1:
        return {(device, streams[0]): f"device {device}" for device in devices}
    return {(device, stream): f"{device} {stream}" for device in devices for stream in streams}


def _wide(boxes: list[Box], scale: Scale) -> bool:
    """Return True if all but the narrowest tenth of the boxes are wide enough in columns to be drawn one by one."""
    ticks_each = scale.ticks_each
    widths = [(box.end - box.start) / ticks_each for box in boxes]
    tenth = quantiles(widths, n=10, method="inclusive")[0] if len(widths) > 1 else widths[0]
    return tenth >= (1 if scale.exact else _NARROW)


def _letters(boxes: list[Box]) -> Mapping[PassKind, str]:
    """Return the letter for each kind of pass.

    A full backward is B, as in the papers, unless backwards for the input occur as well; then it is X.
    """
    kinds = {box.of.kind for box in boxes}
    named = {kind: kind.value[0] for kind in PassKind}
    return named | {BW: "X" if B in kinds else "B"}


def _marks(
    problem: Problem, boxes: list[Box], letters: Mapping[PassKind, str]
) -> dict[tuple[DeviceId, str], list[Mark]]:
    """Return the marks of each row, by device and stream; the two passes of a block are one mark."""
    fill = _fills(problem)
    marks: dict[tuple[int, str], list[Mark]] = {}
    pending: Box | None = None
    for box in boxes:
        p = box.of
        row = marks.setdefault((box.device, box.stream), [])
        if box.overlapped and pending is None:
            pending = box
        elif box.overlapped:
            assert pending is not None
            both = [(letters[one.kind], str(microbatch_number(problem, one))) for one in (pending.of, p)]
            names, numbers = "&".join(map("".join, both)), "&".join(number for _, number in both)
            row.append(Mark(box.start, box.end, "&", names, numbers, fill(box)))
            pending = None
        else:
            letter, number = "T" if box.sends else letters[p.kind], str(microbatch_number(problem, p))
            row.append(Mark(box.start, box.end, letter, f"{letter}{number}", number, fill(box)))
    return marks


def _fills(problem: Problem) -> Callable[[Box], RGB]:
    """Return the function for the colour of a box, as in the picture."""
    shade_of, count = shade_numbers(problem), len(shade_names(problem))
    return lambda box: TRANSFER if box.sends else shade(box.of.kind, shade_of[box.of.stage], count)


def _legend(
    problem: Problem,
    boxes: list[Box],
    letters: Mapping[PassKind, str],
    scale: Scale | None,
    columns: int,
    coloured: bool,
) -> Iterator[Line]:
    """Yield the legend on as many lines as needed, at least one: kinds of passes in `boxes`, blocks, transfers, idle.

    If the chart is `coloured`, idle time, which has no colour, is left out; letters have their colours in any case.
    `scale` is that of a chart whose columns are samples, explained after the letters; None where each box is drawn by
    itself. `columns` is the width in characters.
    """
    lines: list[list[Piece]] = [[]]
    for letter, name, fill in _entries(boxes, letters, coloured):
        taken = sum(len(piece.text) for piece in lines[-1])
        if lines[-1] and taken + len(letter) + len(name) + 3 > columns:
            lines.append([])
        gap = [Piece("  ")] if lines[-1] else []
        lines[-1] += [*gap, Piece(letter, fill), Piece(f" {name}")]
    yield from map(tuple, lines)
    if scale is not None:
        each = number_text(float(f"{scale.ticks_each * float(problem.tick):.3g}"))
        text = f"a column is {each} {problem.time_unit}".rstrip() + ", with letters in proportion to time"
        yield from ((Piece(part),) for part in wrap(text, columns))


def _entries(
    boxes: list[Box], letters: Mapping[PassKind, str], coloured: bool
) -> Iterator[tuple[str, str, RGB | None]]:
    alone = {box.of.kind for box in boxes if not box.overlapped and not box.sends}
    seen: set[str] = set()
    for kind, name in NAMES.items():
        if kind in alone and letters[kind] not in seen:
            seen.add(letters[kind])
            meaning = "recomputation" if kind in RECOMPUTATIONS else name.lower()
            both = "backward, both parts at once" if letters[kind] == "X" else meaning
            yield letters[kind], both, shade(kind, 0, 1)
    if any(box.overlapped for box in boxes):
        yield "&", "forward and backward together", shade(BW, 0, 1)
    if any(box.sends for box in boxes):
        yield "T", "transfer", TRANSFER
    if not coloured:
        yield IDLE, "idle", None
