"""Memory of many devices as a heat map: a row for each device, coloured by the share of its memory in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Patch
from numpy.typing import NDArray

from pipesched.problem.formatting import memory_text
from pipesched.problem.quantities import MemorySteps, Ticks
from pipesched.schedule.drawing.boxes import makespan
from pipesched.schedule.metrics import memory_steps
from pipesched.schedule.timeline import Timeline
from plots.catalogue import Plot
from plots.drawing.frame import Handle, device_labels, draw_frame, legend_under_axis
from plots.drawing.memory_marks import OVER, whole_memory, write_peak


@dataclass(frozen=True)
class HeatMapParams:
    """Size and resolution of heat maps.

    `fewest_devices` is the number of devices from which memory is drawn so; strips show the steps of fewer better. Each
    of the `columns` shows the most in use in its part of the time: about as many as a picture has pixels for them.
    """

    fewest_devices: int = 16
    columns: int = 1200


PARAMS = HeatMapParams()
_COLOURS = "#f4f7fb", "#9cc3e4", "#4a80b8", "#12305a"
SHADES = LinearSegmentedColormap.from_list("held", _COLOURS).with_extremes(over=OVER)


def draw_heat_map(timeline: Timeline, axes: Axes) -> None:
    """Draw one row for each device, device 0 on top.

    Shades are shares of the device's memory; of a device without a limit, shares of the largest peak of all devices.
    """
    problem = timeline.problem
    draw_frame(timeline, axes)
    end = makespan(timeline) or 1
    devices = range(problem.devices)
    steps = [[(at, level + problem.static[d]) for at, level in memory_steps(timeline, d)] for d in devices]
    peaks = [max(level for _, level in row) for row in steps]
    largest = max(*peaks, 1)
    rooms = [whole_memory(problem, device) for device in devices]
    whole = [largest if room is None else max(room, 1) for room in rooms]
    shares = [_most(row, end) / most for row, most in zip(steps, whole, strict=True)]
    extent = 0, problem.in_units(end), problem.devices, 0
    axes.imshow(shares, SHADES, aspect="auto", interpolation="nearest", vmin=0, vmax=1, extent=extent)
    for row in range(1, problem.devices):
        axes.axhline(row, color="white", linewidth=0.5)
    size, labelled = device_labels(problem.devices, axes)
    for device in labelled:
        write_peak(axes, problem, device, peaks[device], size)
    axes.set_ylabel(f"Memory ({problem.memory_unit})", parse_math=False)
    whose = "its device's memory" if None not in rooms else f"{memory_text(problem, largest)}, the largest peak"
    entries: list[tuple[Handle, str]] = [
        (Patch(facecolor=SHADES(percent / 100), edgecolor="#8f98a3"), f"{percent} %") for percent in (0, 25, 50, 75)
    ]
    entries.append((Patch(facecolor=SHADES(1.0)), f"100 % of {whose}"))
    if any(peak > most for peak, most in zip(peaks, whole, strict=True)):
        entries.append((Patch(facecolor=OVER), "more than it has"))
    legend_under_axis(axes, entries)


def _most(steps: Sequence[tuple[Ticks, MemorySteps]], end: Ticks) -> NDArray[np.float64]:
    """Return the largest memory level in each column, from (tick, level) steps.

    There are `PARAMS.columns` of them, from time 0 to `end`.
    """
    largest = np.zeros(PARAMS.columns)
    for (tick, level), until in zip(steps, [tick for tick, _ in steps[1:]] + [end], strict=True):
        first, last = tick * PARAMS.columns // end, -(-until * PARAMS.columns // end)
        part = largest[first : max(last, first + 1)]
        np.maximum(part, float(level), out=part)
    return largest


def is_dense(timeline: Timeline) -> bool:
    """Return True if there are `PARAMS.fewest_devices` or more, and no host whose memory has to be drawn too."""
    return timeline.problem.devices >= PARAMS.fewest_devices and not timeline.problem.network.hosts


HEAT_MAP = Plot("memory", "the memory every device holds", draw_heat_map, row=0.5, widest=14.0, applies=is_dense)
