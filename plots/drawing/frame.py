"""The frame of plots of a timeline: a row for each device, device 0 on top, the time axis, the legend at the bottom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerBase
from matplotlib.transforms import ScaledTranslation

from pipesched.schedule.drawing.boxes import makespan
from pipesched.schedule.timeline import Timeline

DEVICE_LABEL = 10.0  # points, where the rows are high enough
SMALLEST_LABEL = 5.0
CHARACTER = 0.58  # width of an average character in font sizes


Handle = Artist | tuple[Artist, ...]


def draw_frame(timeline: Timeline, axes: Axes, label_at: float = 0.5) -> None:
    """Draw a row from d to d + 1 for each device d, labelled at d + `label_at`, and time in the file's unit.

    All of the time is shown, unless limits of the axes were set before.
    """
    problem = timeline.problem
    device_rows(problem.devices, axes, problem.in_units(makespan(timeline)), problem.time_unit, label_at)


def device_rows(devices: int, axes: Axes, end: float, unit: str, label_at: float = 0.5) -> None:
    """Draw rows for `devices` devices, with time from 0 to `end` in this unit, unless the time axis has limits already.

    A device's label is at `label_at` of the height of its row, from the top.
    """
    axes.set_ylim(devices, 0)
    size, shown = device_labels(devices, axes)
    axes.set_yticks([d + label_at for d in shown], [f"Device {d}" for d in shown], fontsize=size)
    axes.tick_params(axis="y", length=0)
    if axes.get_autoscalex_on():
        axes.set_xlim(0, end or 1)
    axes.set_xlabel(f"Time ({unit})" if unit else "Time", parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)


def device_labels(devices: int, axes: Axes) -> tuple[float, range]:
    """Return the font size of row labels in points, and the devices that get one: not all where rows are low."""
    row = points(axes)[1] / devices
    size = max(SMALLEST_LABEL, min(DEVICE_LABEL, 0.6 * row))
    return size, range(0, devices, ceil(1.3 * size / row) if row > 0 else devices)


def legend_under_axis(
    axes: Axes,
    entries: Sequence[tuple[Handle, str]],
    handlers: Mapping[type, HandlerBase] | None = None,
) -> None:
    """Draw a legend of (handle, label) entries under the time axis, in as many columns as the axes are wide.

    `handlers` draw handles of special types, as matplotlib's `handler_map`; None: matplotlib's own.
    """
    size = float(axes.xaxis.label.get_fontsize())  # points, though the stubs leave room for names such as "small"
    # The handle and the gaps around an entry take about five characters' heights.
    widths = [(CHARACTER * len(label) + 5) * size for _, label in entries]
    room = points(axes)[0]
    columns = len(entries) if sum(widths) <= room else int(room / max(widths))
    legend = axes.legend(
        [handle for handle, _ in entries],
        [label for _, label in entries],
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        # Below the tick labels and the axis label, whose height is in points whatever the size of the axes.
        bbox_transform=axes.transAxes + ScaledTranslation(0, -3.8 * size / 72, figure_of(axes).dpi_scale_trans),
        ncols=max(1, columns),
        frameon=False,
        borderaxespad=0.0,
        handler_map=handlers,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def points(axes: Axes) -> tuple[float, float]:
    """Return the width and height of the axes in points, in the current layout."""
    box = axes.get_window_extent()
    scale = 72 / figure_of(axes).dpi
    return box.width * scale, box.height * scale


def figure_of(axes: Artist) -> Figure:
    """Return the figure that an artist is drawn on."""
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    return figure
