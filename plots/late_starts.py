"""The picture of late starts in a measured run: the delay of every pass on each device, and the causes of the delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes

from pipesched.measurement.late_starts import LateStart, LateStarts
from pipesched.measurement.pass_causes import Cause
from plots.render import Format, paper, saved

MORE, LESS, TOTAL = "#c0392b", "#17692f", "#2f5f91"
WIDTH, HEIGHT = 11.0, 7.6  # inches
_NAMED = 10  # devices that fit the legend; of more only the first and the last are named
_ROOM = 0.25  # of the largest delay, on either side: for the figures


def render_late_starts(found: LateStarts, names: Mapping[Cause, str], title: str, format: Format = "png") -> bytes:
    """Return the image; `names` are the causes in the order in which they are shown, with their names."""
    figure = paper(WIDTH, HEIGHT)
    upper, lower = figure.subplots(2, 1)
    draw_lateness(found.passes, upper)
    upper.set_title(title, loc="left", fontsize=11, parse_math=False)
    draw_causes(found, names, lower)
    return saved(figure, format)


def draw_lateness(passes: Sequence[LateStart], axes: Axes) -> None:
    """Draw a line for each device through its passes: the start of each, and its delay against the prediction."""
    devices = 1 + max(one.device for one in passes)
    colours = mpl.colormaps["viridis"]
    for device in range(devices):
        of_device = sorted((one for one in passes if one.device == device), key=lambda one: one.measured)
        named = devices <= _NAMED or device in (0, devices - 1)
        axes.plot(
            [1000 * one.measured for one in of_device],
            [1000 * one.late for one in of_device],
            color=colours(0.35 + 0.5 * device / max(1, devices - 1)),  # the ends are lost on dark or light pages
            marker="o", markersize=2.5, linewidth=1, label=f"Device {device}" if named else None,
        )  # fmt: skip
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_xlabel("Measured start of a pass (ms)")
    axes.set_ylabel("Later than predicted (ms)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)


def draw_causes(found: LateStarts, names: Mapping[Cause, str], axes: Axes) -> None:
    """Draw a bar for each cause, each beginning where the previous one ends: from predicted to measured makespan."""
    at = 0.0
    edges = [0.0]
    for row, cause in enumerate(names):
        ms = 1000 * found.causes[cause]
        axes.barh(row, ms, left=at, color=MORE if ms > 0 else LESS, height=0.62)
        _write(axes, ms, max(at, at + ms), row)
        at += ms
        edges.append(at)
    axes.barh(len(names), at, color=TOTAL, height=0.62)
    _write(axes, at, max(at, 0.0), len(names))
    axes.set_yticks(range(len(names) + 1), [*names.values(), "measured less predicted"], parse_math=False)
    axes.set_ylim(len(names) + 0.6, -0.6)
    low, high = min(edges), max(edges)
    room = _ROOM * max(high - low, 1e-3)
    axes.set_xlim(low - room * (low < -0.2 * room), high + room)
    axes.axvline(0, color="black", linewidth=0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"ms beyond the predicted {1000 * found.predicted:.2f} ms, on the critical path")
    axes.spines[["top", "right"]].set_visible(False)


def _write(axes: Axes, ms: float, end: float, row: int) -> None:
    text = f"{round(ms, 2) + 0.0:+.2f}"
    axes.annotate(text, (end, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
