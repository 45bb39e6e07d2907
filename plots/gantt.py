"""The Gantt chart: what every device runs when, one box per pass, as in the papers on pipeline schedules."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from numpy.typing import NDArray

from pipesched.problem.pass_names import microbatch_number
from pipesched.problem.problem import Problem
from pipesched.schedule.drawing.boxes import Box, boxes_of, lanes
from pipesched.schedule.drawing.colours import EDGE, LINE, RGB, TRANSFER, ink_on, shade, shade_names, shade_numbers
from pipesched.schedule.timeline import Timeline
from plots.catalogue import PLOTS, Plot
from plots.drawing.box_numbers import BoxNumbers
from plots.drawing.frame import draw_frame, points
from plots.drawing.gantt_legend import draw_legend


def draw_gantt(timeline: Timeline, axes: Axes) -> None:
    """One row a device, device 0 on top; time in the file's unit; the micro-batch's number in each box that holds it.

    The hue tells the kind of pass, its shade the chunk or, in a bidirectional placement, the direction. Each stream has
    a lane, and tasks with a name show it where their boxes hold it.
    """
    problem = timeline.problem
    boxes = list(boxes_of(timeline))
    compute_top, compute_bottom = lanes(problem)[problem.streams[0]]
    draw_frame(timeline, axes, (compute_top + compute_bottom) / 2)
    shade_of = shade_numbers(problem)
    count = len(shade_names(problem))
    colours = [TRANSFER if box.sends else shade(box.of.kind, shade_of[box.of.stage], count) for box in boxes]
    corners = _corners(problem, boxes)
    draw_boxes(axes, corners, colours)
    labels = [(str(microbatch_number(problem, box.of)), "" if box.sends else box.name) for box in boxes]
    BoxNumbers(axes, labels, corners, [ink_on(colour) for colour in colours])
    _label_side_lanes(problem, axes)
    draw_legend(axes, problem, boxes)


def _corners(problem: Problem, boxes: list[Box]) -> NDArray[np.float64]:
    """Left, top, right, bottom of every box in the units of the axes."""
    rows = [(problem.in_units(b.start), b.top, problem.in_units(b.end), b.bottom) for b in boxes]
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


def draw_boxes(axes: Axes, corners: NDArray[np.float64], colours: list[RGB]) -> None:
    """All boxes as one collection: tens of thousands of them draw in a second or two."""
    widths = corners[:, 2] - corners[:, 0]
    left, right = axes.get_xlim()
    typical = float(np.median(widths)) / (right - left) * points(axes)[0] if len(widths) else 0.0
    axes.add_collection(
        PolyCollection(
            list(corners[:, [0, 1, 0, 3, 2, 3, 2, 1]].reshape(-1, 4, 2)),
            facecolors=colours,
            edgecolors=EDGE,
            # Narrow boxes get finer lines, or the lines would be all that is seen.
            linewidths=min(LINE, 0.06 * typical),
        ),
        autolim=False,
    )


def _label_side_lanes(problem: Problem, axes: Axes) -> None:
    """The streams' names next to their lanes, where the lanes are high enough to be read."""
    side = {stream: lane for stream, lane in lanes(problem).items() if stream != problem.streams[0]}
    if not side:
        return
    height = min(bottom - top for top, bottom in side.values()) * points(axes)[1] / problem.devices
    if height < 5:
        return
    places = [(d + (top + bottom) / 2, s) for d in range(problem.devices) for s, (top, bottom) in side.items()]
    axes.set_yticks([y for y, _ in places], [s for _, s in places], minor=True, fontsize=min(7.0, height))
    axes.tick_params(axis="y", which="minor", length=0)


PLOTS.register(Plot("gantt", "what every device does when", draw_gantt, zoomed=True))
