"""Two Gantt charts on one time axis: the predicted timeline and the measured one."""

from __future__ import annotations

from matplotlib.axes import Axes

from pipesched.measurement.trace import Measured
from pipesched.schedule.drawing.boxes import lanes, makespan
from pipesched.schedule.drawing.colours import shade, shade_names, shade_numbers
from pipesched.schedule.timeline import Timeline
from plots.drawing.box_numbers import draw_boxes
from plots.drawing.frame import device_rows
from plots.gantt import draw_gantt
from plots.render import figure_size, paper, saved

_BETWEEN = 1.2  # inches: titles and the legend of the first chart


def render_both(plan: Timeline, measured: Measured, title: str, seconds_per_tick: float | None) -> bytes:
    """Return the PNG of both charts; the measured one shows the best step.

    If `seconds_per_tick` is known, both time axes have the same length in seconds.
    """
    width, height = figure_size(plan)
    figure = paper(width, 2 * height + _BETWEEN)
    upper, lower = figure.subplots(2, 1)
    draw_gantt(plan, upper)
    upper.set_title(f"{title}\npredicted", loc="left", parse_math=False)
    longest = max((one.end for row in measured.best for one in row), default=0.0)
    if seconds_per_tick is not None:
        longest = max(longest, makespan(plan) * seconds_per_tick)
        upper.set_xlim(0, plan.problem.in_units(1) * longest / seconds_per_tick or 1)
    draw_measured(measured, lower, longest)
    lower.set_title("measured, best step", loc="left")
    return saved(figure)


def draw_measured(measured: Measured, axes: Axes, longest: float) -> None:
    """Draw a row for each device as in the predicted chart; time is in milliseconds, up to `longest` seconds."""
    problem = measured.problem
    lane_of = lanes(problem)
    top, bottom = lane_of[problem.streams[0]]
    device_rows(problem.devices, axes, 1000 * longest, "ms", (top + bottom) / 2)
    boxes = [(device, one) for device, row in enumerate(measured.best) for one in row]
    ends = [lane_of[part.stream] for _, one in boxes for _, part in [next(iter(problem.tasks(one.of)))]]
    rows = [
        (1000 * one.start, device + upper, 1000 * one.end, device + lower)
        for (device, one), (upper, lower) in zip(boxes, ends, strict=True)
    ]
    shade_of, count = shade_numbers(problem), len(shade_names(problem))
    colours = [shade(one.of.kind, shade_of[one.of.stage], count) for _, one in boxes]
    draw_boxes(axes, rows, colours, [(str(one.of.microbatch), "") for _, one in boxes])
