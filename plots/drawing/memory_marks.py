"""Shared parts of pictures of memory over time: colours, steps of a strip, peaks as text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from matplotlib.axes import Axes

from pipesched.deadline import SHORT, asking
from pipesched.problem.formatting import memory_amount, peak_of
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, Ticks

AREA, OUTLINE, CAP, OVER = "#a9c6e3", "#2f5f91", "#c0392b", "#c0392b"
HOST = "#7d5ba6"
STATIC = "#8f98a3"


def without_notches(steps: list[tuple[Ticks, MemorySteps]]) -> Iterator[tuple[Ticks, MemorySteps]]:
    """Yield (tick, level) steps without dips of no duration: two for each tick, its highest level, then its last.

    A dip is there where a backward frees memory that a forward takes at the same tick; spikes are kept.
    """
    for tick, group in asking(groupby(steps, key=itemgetter(0)), SHORT):
        levels = [level for _, level in group]
        yield tick, max(levels)
        yield tick, levels[-1]


def whole_memory(problem: Problem, device: DeviceId) -> MemorySteps | None:
    """Return the memory of a device with its static part, in units of the problem's resolution; None if unlimited."""
    room = problem.room[device]
    return None if room is None else room + problem.static[device]


def write_peak(axes: Axes, problem: Problem, device: DeviceId, peak: MemorySteps, size: float) -> None:
    """Write the peak, and the capacity if there is one, at the right end of the strip, in a font of `size` points.

    `peak` is in steps of memory and includes static memory. A peak above the capacity is in red.
    """
    capacity = whole_memory(problem, device)
    unit = problem.resolution
    text = memory_amount(problem, peak) if capacity is None else peak_of(peak * unit, capacity * unit, 3)
    axes.annotate(
        text if device else f"peak {text}",
        (1, device + 0.5),
        xycoords=axes.get_yaxis_transform(),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=size,
        color=OVER if capacity is not None and peak > capacity else "black",
        annotation_clip=False,
    )
