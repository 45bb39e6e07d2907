"""The streams of every device as Kimi K2's report draws them: computation, communication, copies, micro-batches.

Forward is blue, backward red, its weight gradient pale, dispatch and combine yellow, transfers of the pipeline green.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch
from numpy.typing import NDArray

from pipesched.schedule.drawing.colours import EDGE, LINE, ink_on
from pipesched.schedule.timeline import Timeline
from plots.box_numbers import BoxNumbers
from plots.catalogue import PLOTS, Plot
from plots.frame import Handle, draw_frame, legend_below, points
from plots.stream_boxes import (
    AGAIN,
    BACKWARD,
    COPY,
    DISPATCH,
    FORWARD,
    TRANSFER,
    WEIGHT,
    Drawn,
    boxes_of,
    lanes,
    phases,
)

MEANINGS = (
    (FORWARD, "Forward"),
    (BACKWARD, "Backward"),
    (WEIGHT, "Weight gradient"),
    (AGAIN, "Forward again"),
    (DISPATCH, "Dispatch, combine (other streams)"),
    (COPY, "Copies to and from the host"),
    (TRANSFER, "Transfer to another device"),
)
PHASES = ("warm-up", "steady state", "cool-down")


def draw_streams(timeline: Timeline, axes: Axes) -> None:
    """A row a device with a lane for each stream and one for micro-batches, forwards there above backwards."""
    problem = timeline.problem
    draw_frame(timeline, axes, sum(lanes(problem)[problem.streams[0]]) / 2)
    boxes = list(boxes_of(timeline))
    corners = np.array(
        [(problem.in_units(b.start), b.top, problem.in_units(b.end), b.bottom) for b in boxes], dtype=np.float64
    ).reshape(-1, 4)
    _draw_boxes(axes, corners, boxes)
    numbered = [n for n, box in enumerate(boxes) if box.number]
    labels = [(boxes[n].number, boxes[n].name) for n in numbered]
    BoxNumbers(axes, labels, corners[numbered], [ink_on(boxes[n].colour) for n in numbered])
    _name_lanes(timeline, axes)
    _mark_phases(timeline, axes)
    _legend(axes, boxes)


def _draw_boxes(axes: Axes, corners: NDArray[np.float64], boxes: list[Drawn]) -> None:
    """All boxes as one collection, narrow ones with finer lines; strips have none."""
    left, right = axes.get_xlim()
    wide = [n for n, box in enumerate(boxes) if box.number]
    widths = corners[wide, 2] - corners[wide, 0]
    typical = float(np.median(widths)) / (right - left) * points(axes)[0] if len(widths) else 0.0
    line = min(LINE, 0.06 * typical)
    axes.add_collection(
        PolyCollection(
            list(corners[:, [0, 1, 0, 3, 2, 3, 2, 1]].reshape(-1, 4, 2)),
            facecolors=[box.colour for box in boxes],
            edgecolors=EDGE,
            linewidths=[line if box.number else 0.0 for box in boxes],
        ),
        autolim=False,
    )


def _name_lanes(timeline: Timeline, axes: Axes) -> None:
    """The names of the lanes but the first, whose label is the device's, where they are high enough to be read."""
    problem = timeline.problem
    first, *others = lanes(problem).items()
    height = (first[1][1] - first[1][0]) * points(axes)[1] / problem.devices
    if height < 5:
        return
    places = [
        (d + (top + bottom) / 2, "micro-batch" if stream is None else stream)
        for d in range(problem.devices)
        for stream, (top, bottom) in others
    ]
    axes.set_yticks([y for y, _ in places], [name for _, name in places], minor=True, fontsize=min(7.0, height))
    axes.tick_params(axis="y", which="minor", length=0)


def _mark_phases(timeline: Timeline, axes: Axes) -> None:
    """A dashed line in every row where its device changes phase; the phases of the first device are named above."""
    problem = timeline.problem
    found = [phases(timeline, device) for device in range(problem.devices)]
    for device, own in enumerate(found):
        if own is not None:
            times = [problem.in_units(time) for time in (own.steady, own.cool_down)]
            axes.vlines(times, device + 0.02, device + 0.98, colors="black", linestyles="dashed", linewidths=1.0)
    if found and found[0] is not None:
        edges = [problem.in_units(time) for time in found[0]]
        above = axes.secondary_xaxis("top")
        middles = [(since + until) / 2 for since, until in pairwise(edges)]
        above.set_xticks(middles, PHASES, fontsize=8.0)
        above.tick_params(axis="x", length=0)
        above.spines["top"].set_visible(False)


def _legend(axes: Axes, boxes: list[Drawn]) -> None:
    """Names the colours that occur."""
    seen = {box.colour for box in boxes}
    entries: list[tuple[Handle, str]] = [
        (Patch(facecolor=colour, edgecolor=EDGE, linewidth=LINE), text) for colour, text in MEANINGS if colour in seen
    ]
    if entries:
        legend_below(axes, entries)


PLOTS.register(Plot("streams", "what every stream of every device does", draw_streams, row=1.6))
