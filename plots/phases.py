"""The picture of warm-up, steady state and cool-down as in Kimi K2's report, with each device's and host's memory.

Every device has a row for computation, one for communication (all streams but the first and those that copy
activations), one for offload (copies out above copies back, whatever streams they use) and one for micro-batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from pipesched.problem.formatting import memory_amount, memory_text
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps, Ticks
from pipesched.schedule.drawing.boxes import makespan
from pipesched.schedule.memory_elsewhere import host_steps
from pipesched.schedule.metrics import memory_steps
from pipesched.schedule.timeline import Timeline
from plots.catalogue import PLOTS, Plot
from plots.drawing.frame import Handle, device_labels, draw_frame
from plots.drawing.memory_marks import AREA, CAP, HOST, OUTLINE, without_notches
from plots.drawing.stream_boxes import Lanes, phases
from plots.drawing.stream_marks import PHASES, colour_legend, draw_tasks, mark_phases, name_lanes

WARM_UP, COOL_DOWN = "#eaf2fb", "#fcedeb"
# What is copied in each phase.
COPIED = ("offload", "offload and onload", "load")
# The rows of a device and how high they are against each other; its own name is in the first.
HEADER, COMPUTATION, COMMUNICATION, OFFLOAD, MICRO_BATCHES, MEMORY = (
    "", "Computation", "Communication", "Offload", "Micro-batches", "Memory",
)  # fmt: skip
HEIGHTS = {HEADER: 0.55, COMPUTATION: 1.0, COMMUNICATION: 1.0, OFFLOAD: 1.1, MICRO_BATCHES: 1.0, MEMORY: 1.5}
BETWEEN = 0.08  # of a row, white space below it
MOST = 0.95  # of the row for memory, what the largest amount takes


def draw_phases(timeline: Timeline, axes: Axes) -> None:
    """Draw each device's rows, over phases with different background tints."""
    problem = timeline.problem
    rows = _rows(problem)
    draw_frame(timeline, axes, sum(rows[HEADER]) / 2)
    boxes = draw_tasks(timeline, axes, _lanes(problem, rows))
    _tint(timeline, axes, rows)
    name_lanes(problem, axes, {name: edges for name, edges in rows.items() if name})
    marks = mark_phases(timeline, axes, [f"{of} ({what})" for of, what in zip(PHASES, COPIED, strict=True)]
                        if OFFLOAD in rows else PHASES)  # fmt: skip
    colour_legend(problem, axes, boxes, [*marks, *_draw_memory(timeline, axes, rows[MEMORY])])


def _copying(problem: Problem) -> dict[str, tuple[float, float]]:
    """Return the streams that copy activations and nothing else, each with its part of the row for copies.

    A part is (top, bottom) as fractions of the row: copies out above, copies back below, or all of it for both.
    """
    used = {(s.offload.out_stream, s.offload.in_stream) for s in problem.stages if s.offload}
    others = {task.stream for stage in problem.stages for _, tasks in stage.tasks for task in tasks}
    others |= {problem.streams[0], problem.resources.transfer_stream or problem.streams[0]}
    out, back = {one for one, _ in used} - others, {other for _, other in used} - others
    both = dict.fromkeys(out & back, (0.0, 1.0))
    return dict.fromkeys(out, (0.0, 0.5)) | dict.fromkeys(back, (0.5, 1.0)) | both


def _rows(problem: Problem) -> dict[str, tuple[float, float]]:
    """Return the top and bottom of each row that this problem has, within a device's height of 1."""
    names = [HEADER, COMPUTATION]
    if len(problem.streams) > 1 + len(_copying(problem)):
        names.append(COMMUNICATION)
    names += [OFFLOAD] * bool(_copying(problem)) + [MICRO_BATCHES] * (not problem.network.one_task_each) + [MEMORY]
    unit = (1 - BETWEEN) / sum(HEIGHTS[name] for name in names)
    ends = list(accumulate((unit * HEIGHTS[name] for name in names), initial=BETWEEN / 2))
    return {name: (top, top + 0.94 * (bottom - top)) for name, top, bottom in zip(names, ends, ends[1:], strict=False)}


def _lanes(problem: Problem, rows: dict[str, tuple[float, float]]) -> Lanes:
    """Return top and bottom of the lane of each stream, in a device's row of height 1.

    The key None is for micro-batches.
    """
    found: dict[str | None, tuple[float, float]] = {problem.streams[0]: rows[COMPUTATION]}
    copying = _copying(problem)
    for stream in problem.streams[1:]:
        since, until = copying.get(stream, (0.0, 1.0))
        top, bottom = rows[OFFLOAD if stream in copying else COMMUNICATION]
        found[stream] = top + since * (bottom - top), top + until * (bottom - top)
    return found | ({None: rows[MICRO_BATCHES]} if MICRO_BATCHES in rows else {})


def _tint(timeline: Timeline, axes: Axes, rows: dict[str, tuple[float, float]]) -> None:
    """Draw the background of every device's warm-up and cool-down, over all its rows but the header.

    `rows` gives top and bottom by name.
    """
    problem, top, bottom = timeline.problem, rows[HEADER][1], rows[MEMORY][1]
    for device in range(problem.devices):
        phases_of_device = phases(timeline, device)
        if phases_of_device is not None:
            for since, until, colour in (
                (phases_of_device.begin, phases_of_device.steady, WARM_UP),
                (phases_of_device.cool_down, phases_of_device.end, COOL_DOWN),
            ):
                corner, width = (problem.in_units(since), device + top), problem.in_units(until - since)
                axes.add_patch(Rectangle(corner, width, bottom - top, facecolor=colour, linewidth=0, zorder=0))


def _draw_memory(timeline: Timeline, axes: Axes, row: tuple[float, float]) -> Iterator[tuple[Handle, str]]:
    """Draw the activations of devices on one scale, those of hosts on another, and yield the legend's entries.

    `row` is top and bottom, from 0 to 1, of the space for it within a device's row.
    """
    problem = timeline.problem
    steps_by_device = [list(without_notches(memory_steps(timeline, device))) for device in range(problem.devices)]
    hosts = {devices[0]: steps for devices, steps in host_steps(timeline)}
    most = _most(steps_by_device)
    capacities = [room if room is not None and room <= 1.25 * most else None for room in problem.room]
    scale, host_scale = max([most, *(room for room in capacities if room is not None)]) or 1, _most(hosts.values()) or 1
    end = problem.in_units(makespan(timeline))
    size, labelled = device_labels(problem.devices, axes)
    for device, steps in enumerate(steps_by_device):

        def height(level: int, of: int, baseline: float = device + row[1]) -> float:
            return baseline - (row[1] - row[0]) * MOST * level / of

        times = [*(problem.in_units(tick) for tick, _ in steps), end]
        levels = np.array([height(level, scale) for _, level in [*steps, steps[-1]]])
        axes.fill_between(times, levels, height(0, 1), step="post", facecolor=AREA, edgecolor=OUTLINE, linewidth=0.6)
        room, host = capacities[device], hosts.get(device)
        if room is not None:
            axes.hlines(height(room, scale), 0, end, colors=CAP, linestyles="dashed", linewidths=0.8)
        if host:
            times = [*(problem.in_units(tick) for tick, _ in host), end]
            levels = np.array([height(level, host_scale) for _, level in [*host, host[-1]]])
            axes.step(times, levels, where="post", color=HOST, linewidth=1.2)
        if device in labelled:
            _write_peaks(axes, problem, device + sum(row) / 2, 0.7 * size, _most([steps]), host)
    yield Patch(facecolor=AREA, edgecolor=OUTLINE), f"Activations held (a row is {memory_text(problem, scale)} high)"
    if hosts:
        yield Line2D([], [], color=HOST), f"On the host (a row is {memory_text(problem, host_scale)} high)"
    if any(room is not None for room in capacities):
        yield Line2D([], [], color=CAP, linestyle="--"), "Room for activations"


def _most(strips: Iterable[Sequence[tuple[Ticks, MemorySteps]]]) -> int:
    return max((level for steps in strips for _, level in steps), default=0)


def _write_peaks(
    axes: Axes, problem: Problem, at: float, size: float, peak: int, host: list[tuple[int, int]] | None
) -> None:
    """Write the peaks of device (`peak`) and host at the right end of the row, centred at `at`.

    `host` has the steps of the host's memory. `size` is that of the text in points.
    """
    lines = [f"{'device' if host else 'peak'} {memory_amount(problem, peak)}"]
    if host:
        lines.append(f"host {memory_amount(problem, _most([host]))}")
    axes.annotate(
        "\n".join(lines), (1, at), xycoords=axes.get_yaxis_transform(), xytext=(4, 0), textcoords="offset points",
        va="center", fontsize=size, annotation_clip=False,
    )  # fmt: skip


PLOTS.register(
    Plot("phases", "warm-up, steady state and cool-down, with memory of device and host", draw_phases, row=2.0)
)
