"""The memory plot: the memory of every device over time, activations above static memory, against its capacity."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from pipesched.problem.formatting import memory_text
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, Ticks
from pipesched.schedule.drawing.boxes import makespan
from pipesched.schedule.memory_elsewhere import host_steps, steps_elsewhere
from pipesched.schedule.metrics import memory_steps
from pipesched.schedule.timeline import Timeline
from plots.catalogue import PLOTS, Plot
from plots.drawing.frame import Handle, device_labels, draw_frame, legend_under_axis
from plots.drawing.memory_heat import HEAT_MAP
from plots.drawing.memory_marks import AREA, CAP, HOST, OUTLINE, STATIC, whole_memory, without_notches, write_peak

ROOM = 0.8  # how much of a device's row its strip takes; the rest keeps the strips apart


def draw_memory(timeline: Timeline, axes: Axes) -> None:
    """Draw a strip for each device, device 0 on top: memory as a stepped area, capacity as a dashed line, peak as text.

    All strips have one scale, so that devices with less memory are visible as such.
    """
    problem = timeline.problem
    draw_frame(timeline, axes)
    steps = [memory_steps(timeline, device) for device in range(problem.devices)]
    static = [problem.static[device] for device in range(problem.devices)]
    steps = [[(tick, own + level) for tick, level in strip] for own, strip in zip(static, steps, strict=True)]
    peaks = [max(level for _, level in strip) for strip in steps]
    capacities = [c for device in range(problem.devices) if (c := whole_memory(problem, device)) is not None]
    hosts = host_steps(timeline)
    scale = max([*peaks, *capacities, *(level for _, strip in hosts for _, level in strip), 0]) or 1
    end = makespan(timeline)
    for device, strip in enumerate(steps):
        _draw_strip(axes, problem, device, [*without_notches(strip), (end, strip[-1][1])], scale)
        _draw_static(axes, device, static[device], scale)
        _draw_capacity(axes, problem, device, scale)
    of_others = [
        (device, steps_elsewhere(timeline, device))
        for device in range(problem.devices)
        if problem.network.changes_of_others(device)
    ]
    lines = [(devices[0], strip, "-") for devices, strip in hosts] + [(*one, ":") for one in of_others]
    for device, strip, style in lines:
        times = [problem.in_units(tick) for tick, _ in [*strip, (end, 0)]]
        levels = [_height(device, level, scale) for _, level in [*strip, (end, strip[-1][1])]]
        axes.step(times, levels, where="post", color=HOST, linewidth=1.2, linestyle=style)
    size, labelled = device_labels(problem.devices, axes)
    for device in labelled:
        write_peak(axes, problem, device, peaks[device], 0.8 * size)
    axes.set_ylabel(f"Memory ({problem.memory_unit})", parse_math=False)
    in_use = Patch(facecolor=AREA, edgecolor=OUTLINE)
    entries: list[tuple[Handle, str]] = [(in_use, f"In use (a row is {memory_text(problem, scale)} high)")]
    if any(static):
        entries.append((Patch(facecolor=STATIC), "Static: weights, gradients, optimizer"))
    if capacities:
        entries.append((Line2D([], [], color=CAP, linestyle="--"), "Capacity"))
    if hosts:
        shared = " (of devices that share one, at the first)" if any(len(devices) > 1 for devices, _ in hosts) else ""
        entries.append((Line2D([], [], color=HOST), f"On the host{shared}"))
    if of_others:
        entries.append((Line2D([], [], color=HOST, linestyle=":"), "Activations of other devices"))
    legend_under_axis(axes, entries)


def _draw_strip(
    axes: Axes, problem: Problem, device: DeviceId, steps: list[tuple[Ticks, MemorySteps]], scale: MemorySteps
) -> None:
    """Draw a device's memory over time as an area with steps, from the baseline of its strip up.

    `steps` are (tick, memory from then on); memory of `scale` units is as high as a strip.
    """
    times = [problem.in_units(tick) for tick, _ in steps]
    baseline = _height(device, 0, scale)
    levels = np.array([_height(device, level, scale) for _, level in steps])
    axes.fill_between(times, levels, baseline, step="post", facecolor=AREA, edgecolor=OUTLINE, linewidth=0.6)
    axes.axhline(baseline, color=OUTLINE, linewidth=0.6)


def _draw_static(axes: Axes, device: DeviceId, static: MemorySteps, scale: MemorySteps) -> None:
    """Draw the static memory of the device, as a band at the bottom of its strip.

    Memory of `scale` is as high as a strip.
    """
    if static:
        axes.axhspan(_height(device, 0, scale), _height(device, static, scale), facecolor=STATIC, linewidth=0)


def _draw_capacity(axes: Axes, problem: Problem, device: DeviceId, scale: MemorySteps) -> None:
    """Draw a dashed line at the device's capacity, if it has one.

    Memory of `scale` is as high as a strip.
    """
    capacity = whole_memory(problem, device)
    if capacity is not None:
        axes.axhline(_height(device, capacity, scale), color=CAP, linestyle="--", linewidth=1.0)


def _height(device: DeviceId, level: MemorySteps, scale: MemorySteps) -> float:
    """Return the position of a memory level on the axis, which grows downwards.

    `scale` units are as high as a strip.
    """
    return device + (1 + ROOM) / 2 - ROOM * level / scale


PLOTS.register(Plot("memory", "the memory every device holds", draw_memory, dense=HEAT_MAP))
