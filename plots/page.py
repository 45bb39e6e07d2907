"""An HTML page that shows a schedule: passes above, memory below, on one time axis that zooms; needs no network."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.colors import to_hex

from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import memory_steps
from pipesched.schedule.timeline import Timeline
from plots.colours import NAMES, TRANSFER, ink_on, shade, shade_names, shade_numbers
from plots.gantt_boxes import Box, boxes_of, lanes, makespan, row_shares
from plots.memory import without_notches

_SCRIPT = Path(__file__).with_name("page.js")
_STYLE = (
    "body{font:14px sans-serif;margin:16px}h1{font-size:18px;margin:0}p{margin:4px 0 8px}"
    "canvas{width:100%;display:block;cursor:grab;touch-action:none}"
    "#tip{position:fixed;display:none;background:#222;color:#fff;padding:4px 8px;border-radius:3px;pointer-events:none;"
    "white-space:pre}.k{display:inline-block;width:12px;height:12px;border:1px solid #2b2b2b;margin:0 4px 0 14px}"
)


def page(timeline: Timeline, title: str, caption: str) -> str:
    """The text of the file; `title` and `caption` are plain text."""
    data = json.dumps(document(timeline), separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1><p>{escape(caption)}</p>\n"
        f"<p>{_legend(timeline)}</p>\n"
        "<p>Wheel or + and − zoom, dragging or the arrow keys move, double click or 0 shows all; "
        'point at a pass for its times.</p>\n<canvas id="chart" tabindex="0"></canvas><div id="tip"></div>\n'
        "<noscript>The charts of this page are drawn by its script.</noscript>\n"
        f"<script>const DATA={data};\n{_SCRIPT.read_text(encoding='utf-8')}</script>\n</body></html>\n"
    )


def document(timeline: Timeline) -> dict[str, Any]:
    """What the page draws, times in ticks, memory in the file's unit.

    `boxes` holds a row a device of numbers, four a box: ticks since the start of the box before, ticks it lasts,
    micro-batch, and its place in `styles`: name of the pass, colour, ink, top and bottom in the device's row, and the
    name of the task where it has one. `lanes` names the streams beside the first, with the middles of their lanes.
    `memory` holds a row a device, two numbers a step: ticks since the step before, and the level from then on.
    """
    problem = timeline.problem
    shade_of, count = shade_numbers(problem.placement), len(shade_names(problem.placement))
    styles: dict[tuple[str | float, ...], int] = {}
    rows: list[list[int]] = [[] for _ in range(problem.devices)]
    last = [0] * problem.devices
    for box in sorted(boxes_of(timeline), key=lambda box: (box.start, box.end)):
        device = problem.device(box.of)
        style = _style(box, device, shade_of[box.of.stage], count)
        rows[device] += [
            box.start - last[device], box.end - box.start, box.of.microbatch, styles.setdefault(style, len(styles)),
        ]  # fmt: skip
        last[device] = box.start
    steps = [list(dict.fromkeys(without_notches(memory_steps(timeline, d)))) for d in range(problem.devices)]
    capacity = [None if c is None else c + problem.static[d] for d, c in enumerate(problem.room)]
    unit = float(problem.resolution)
    return {
        "tick": float(problem.tick),
        "unit": problem.time_unit,
        "end": makespan(timeline),
        "rowShare": row_shares(problem),
        "lanes": _side_lanes(problem),
        "styles": list(styles),
        "boxes": rows,
        "memory": [
            _paired([tick for tick, _ in held], [(level + problem.static[d]) * unit for _, level in held])
            for d, held in enumerate(steps)
        ],
        "capacity": [None if c is None else c * unit for c in capacity],
        "memoryUnit": problem.memory_unit,
    }


def _side_lanes(problem: Problem) -> list[tuple[str, float]]:
    found = [(stream, round((top + bottom) / 2, 4)) for stream, (top, bottom) in lanes(problem).items()]
    return found[1:]


def _style(box: Box, device: int, number: int, count: int) -> tuple[str | float, ...]:
    colour = TRANSFER if box.sends else shade(box.of.kind, number, count)
    top, bottom = round(box.top - device, 4), round(box.bottom - device, 4)
    style = f"{box.of.kind.value}{box.of.stage}", to_hex(colour), ink_on(colour), top, bottom
    return (*style, box.name) if box.name else style


def _paired(ticks: list[int], levels: list[float]) -> list[float]:
    """Ticks since the one before and level, alternating."""
    since = [tick - before for tick, before in zip(ticks, [0, *ticks], strict=False)]
    return [number for pair in zip(since, levels, strict=True) for number in pair]


def _legend(timeline: Timeline) -> str:
    """The kinds of pass that occur, and the shades where there are several."""
    kinds = {p.kind for p in timeline.schedule.passes()}
    names = shade_names(timeline.problem.placement)
    said = [(to_hex(shade(kind, 0, 1)), name) for kind, name in NAMES.items() if kind in kinds]
    if timeline.problem.transfer_stream is not None:
        said.append((to_hex(TRANSFER), "Transfer to another device"))
    text = "".join(f'<span class="k" style="background:{colour}"></span>{name}' for colour, name in said)
    return text + (f" · shades, strong to pale: {', '.join(names)}" if len(names) > 1 else "")
