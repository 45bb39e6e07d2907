"""Marks around the tasks in pictures of streams: names of lanes, phases, legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from pipesched.deadline import SHORT, asking
from pipesched.problem.problem import Problem
from pipesched.schedule.drawing.colours import EDGE, LINE, RGB
from pipesched.schedule.timeline import Timeline
from plots.drawing.box_numbers import draw_boxes
from plots.drawing.frame import Handle, legend_under_axis, points
from plots.drawing.gantt_legend import HANDLERS, shade_entries
from plots.drawing.stream_boxes import KINDS, MEANINGS, Drawn, Lanes, boxes_of, phases

PHASES = ("warm-up", "steady state", "cool-down")


def draw_tasks(timeline: Timeline, axes: Axes, where: Lanes) -> list[Drawn]:
    """Draw every task in the lane of its stream, with number and name where readable; returns the drawn tasks."""
    problem = timeline.problem
    boxes = list(boxes_of(timeline, where))
    corners = [(problem.in_units(b.start), b.top, problem.in_units(b.end), b.bottom) for b in asking(boxes, SHORT)]
    draw_boxes(axes, corners, [box.colour for box in boxes], [(box.number, box.name) for box in asking(boxes, SHORT)])
    return boxes


def name_lanes(problem: Problem, axes: Axes, names: Mapping[str, tuple[float, float]]) -> None:
    """Write the names of lanes at every device's row, if the lanes are high enough to read them.

    `names` has by name the (top, bottom) of the lane in a row of height 1.
    """
    devices = problem.devices
    if not names:
        return
    height = min(bottom - top for top, bottom in names.values()) * points(axes)[1] / devices
    if height < 5:
        return
    places = [(d + (top + bottom) / 2, name) for d in range(devices) for name, (top, bottom) in names.items()]
    axes.set_yticks([y for y, _ in places], [name for _, name in places], minor=True, fontsize=min(7.0, height))
    axes.tick_params(axis="y", which="minor", length=0)


def mark_phases(timeline: Timeline, axes: Axes, names: Sequence[str] = PHASES) -> list[tuple[Handle, str]]:
    """Draw a dashed line in every row where its device changes phase, and name the first device's phases above.

    `names` are those of the three phases, in order. Returns the legend's entry in a list, empty if no device has
    phases.
    """
    problem = timeline.problem
    found = [phases(timeline, device) for device in range(problem.devices)]
    for device, ends in enumerate(found):
        if ends is not None:
            times = [problem.in_units(time) for time in (ends.steady, ends.cool_down)]
            axes.vlines(times, device + 0.02, device + 0.98, colors="black", linestyles="dashed", linewidths=1.0)
    if found and found[0] is not None:
        edges = [problem.in_units(time) for time in found[0]]
        above = axes.secondary_xaxis("top")
        above.tick_params(axis="x", length=0, labelsize=8.0)
        above.spines["top"].set_visible(False)

        def name(of: Axes) -> None:
            """Write each phase's name in the middle of its visible part, also after a zoom."""
            left, right = of.get_xlim()
            seen = [(max(since, left), min(until, right)) for since, until in pairwise(edges)]
            shown = [(sum(part) / 2, text) for part, text in zip(seen, names, strict=True) if part[0] < part[1]]
            above.set_xticks([middle for middle, _ in shown], [text for _, text in shown])

        name(axes)
        axes.callbacks.connect("xlim_changed", name)
    marked = any(ends is not None for ends in found)
    return [(Line2D([], [], color="black", linestyle="dashed", linewidth=1.0), "Change of phase")] if marked else []


def colour_legend(
    problem: Problem, axes: Axes, boxes: Sequence[Drawn], more: Sequence[tuple[Handle, str]] = ()
) -> None:
    """Draw a legend of the colours that occur, of their shades, and of `more` entries."""
    seen: dict[str, set[RGB]] = {}
    for box in boxes:
        seen.setdefault(box.meaning, set()).add(box.colour)
    entries: list[tuple[Handle, str]] = [
        # Of the shades, one a chunk, the strongest is shown.
        (Patch(facecolor=min(seen[text], key=sum), edgecolor=EDGE, linewidth=LINE), text)
        for text in MEANINGS
        if text in seen
    ]
    entries += shade_entries(problem, {kind for kind, text in KINDS.items() if text in seen})
    if entries or more:
        legend_under_axis(axes, [*entries, *more], HANDLERS)
