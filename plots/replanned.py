"""The Gantt chart of an iteration ordered anew: what had begun is hatched, a line marks the moment of the state."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch

from pipesched.problem.formatting import size
from pipesched.problem.pass_names import microbatch_number
from pipesched.problem.problem import Problem
from pipesched.results.replanned import Replanned
from pipesched.schedule.drawing.boxes import lanes
from pipesched.schedule.drawing.colours import EDGE, LINE, NAMES, ink_on, shade, shade_names, shade_numbers
from plots.drawing.box_numbers import BoxNumbers
from plots.drawing.frame import legend_below
from plots.drawing.gantt_legend import HANDLERS, shade_entries
from plots.gantt import draw_boxes
from plots.render import DPI, MARGIN, saved

_ROW, _PASS, _WIDEST, _BESIDES = (
    0.42,
    0.32,
    26.0,
    1.5,
)  # inches: a device, a pass of the busiest one, all, title and legend


def render_replanned(found: Replanned) -> bytes:
    """The PNG of all passes; ValueError where no order was found."""
    if found.tasks is None:
        raise ValueError("no order to draw")
    busiest = max(map(len, found.orders()))
    width = min(_WIDEST, max(8.0, _PASS * busiest))
    layout = ConstrainedLayoutEngine(w_pad=MARGIN, h_pad=MARGIN)
    figure = Figure(figsize=(width, _ROW * found.problem.devices + _BESIDES), dpi=DPI, layout=layout)
    axes = figure.subplots()
    draw_replanned(found, axes)
    axes.set_title(
        f"{found.problem.name}, {size(found.problem)}\n{found.text().partition(';')[0]}", loc="left", parse_math=False
    )
    return saved(figure)


def draw_replanned(found: Replanned, axes: Axes) -> None:
    """One row a device and in it a lane a stream, as in the chart of a schedule."""
    lane = lanes(found.problem)
    problem, tasks = found.problem, found.tasks or {}
    corners = np.array(
        [
            (
                problem.in_units(ran.start),
                problem.device(p) + top,
                problem.in_units(ran.end),
                problem.device(p) + bottom,
            )
            for (p, part), ran in tasks.items()
            for top, bottom in (lane[problem.tasks_of(p.kind, p.stage)[part].stream],)
        ],
        dtype=np.float64,
    ).reshape(-1, 4)
    _draw_frame(found, problem, axes)
    numbers, count = shade_numbers(problem), len(shade_names(problem))
    colours = [shade(p.kind, numbers[p.stage], count) for p, _ in tasks]
    draw_boxes(axes, corners, colours)
    begun = corners[[task in found.state.ran for task in tasks]]
    hatched = list(begun[:, [0, 1, 0, 3, 2, 3, 2, 1]].reshape(-1, 4, 2))
    axes.add_collection(
        PolyCollection(hatched, facecolors="none", edgecolors=EDGE, linewidths=0, hatch="////"), autolim=False
    )
    BoxNumbers(axes, [(str(microbatch_number(problem, p)), "") for p, _ in tasks], corners, list(map(ink_on, colours)))
    kinds = {p.kind for p, _ in tasks}
    legend_below(
        axes,
        [
            *(
                (Patch(facecolor=shade(kind, 0, 1), edgecolor=EDGE, linewidth=LINE), name)
                for kind, name in NAMES.items()
                if kind in kinds
            ),
            (Patch(facecolor="white", edgecolor=EDGE, linewidth=LINE, hatch="////"), "had begun"),
            *shade_entries(problem, kinds),
        ],
        HANDLERS,
    )


def _draw_frame(found: Replanned, problem: Problem, axes: Axes) -> None:
    axes.set_ylim(problem.devices, 0)
    axes.set_yticks([d + 0.5 for d in range(problem.devices)], [f"Device {d}" for d in range(problem.devices)])
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, problem.in_units(found.value or 0) or 1)
    axes.set_xlabel(f"Time ({problem.time_unit})" if problem.time_unit else "Time")
    axes.spines[["top", "right"]].set_visible(False)
    axes.axvline(problem.in_units(found.state.now), color="black", linewidth=1.2, linestyle="--")
