"""The Gantt chart of a replanned iteration: passes already begun are hatched, a line marks the time of replanning."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch

from pipesched.problem.formatting import size
from pipesched.problem.pass_names import microbatch_number
from pipesched.results.replanned import Replanned
from pipesched.schedule.drawing.boxes import lanes
from pipesched.schedule.drawing.colours import EDGE, LINE, shade, shade_names, shade_numbers
from plots.drawing.box_numbers import draw_boxes, outlines
from plots.drawing.frame import device_rows, legend_under_axis
from plots.drawing.gantt_legend import HANDLERS, kind_entries, shade_entries
from plots.render import paper, saved

# Inches: a device, a pass of the busiest one, all, title and legend.
_ROW, _PASS, _WIDEST, _BESIDES = 0.42, 0.32, 26.0, 1.5


def render_replanned(found: Replanned) -> bytes:
    """Return the PNG of all passes, those that had run and those that were planned.

    ValueError if no order was found.
    """
    if found.tasks is None:
        raise ValueError("no order to draw")
    busiest = max(map(len, found.orders()))
    width = min(_WIDEST, max(8.0, _PASS * busiest))
    figure = paper(width, _ROW * found.problem.devices + _BESIDES)
    axes = figure.subplots()
    draw_replanned(found, axes)
    axes.set_title(
        f"{found.problem.name}, {size(found.problem)}\n{found.text().partition(';')[0]}", loc="left", parse_math=False
    )
    return saved(figure)


def draw_replanned(found: Replanned, axes: Axes) -> None:
    """Draw a row for each device with a lane for each stream, as in the chart of a schedule.

    A dashed line is the moment from which the order was planned; tasks that had begun by then are hatched.
    """
    lane = lanes(found.problem)
    problem, tasks = found.problem, found.tasks or {}
    corners = [
        (problem.in_units(ran.start), problem.device(p) + top, problem.in_units(ran.end), problem.device(p) + bottom)
        for (p, part), ran in tasks.items()
        for top, bottom in (lane[problem.tasks_of(p.kind, p.stage)[part].stream],)
    ]
    device_rows(problem.devices, axes, problem.in_units(found.value or 0), problem.time_unit)
    axes.axvline(problem.in_units(found.state.now), color="black", linewidth=1.2, linestyle="--")
    numbers, count = shade_numbers(problem), len(shade_names(problem))
    colours = [shade(p.kind, numbers[p.stage], count) for p, _ in tasks]
    draw_boxes(axes, corners, colours, [(str(microbatch_number(problem, p)), "") for p, _ in tasks])
    begun = [corner for corner, task in zip(corners, tasks, strict=True) if task in found.state.ran]
    hatched = outlines(np.array(begun, dtype=np.float64).reshape(-1, 4))
    axes.add_collection(
        PolyCollection(hatched, facecolors="none", edgecolors=EDGE, linewidths=0, hatch="////"), autolim=False
    )
    kinds = {p.kind for p, _ in tasks}
    legend_under_axis(
        axes,
        [
            *kind_entries(kinds),
            (Patch(facecolor="white", edgecolor=EDGE, linewidth=LINE, hatch="////"), "had begun"),
            *shade_entries(problem, kinds),
        ],
        HANDLERS,
    )
