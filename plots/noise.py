"""The noise plot: for each schedule the distribution of its samples, and its value without noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.mlab import GaussianKDE
from matplotlib.patches import Patch
from numpy.typing import NDArray

from plots.drawing.frame import legend_under_axis
from plots.render import Format, paper, saved

BODY, LINE, NOMINAL = "#a9c6e3", "#2f5f91", "#c0392b"
WIDTH, ROW, MARGIN = 9.0, 0.55, 1.8  # inches: the picture, one schedule's row, title and axis and legend


class Spread(NamedTuple):
    """One row of the plot: a schedule's name, its value without noise, and its samples, in the unit of the axis."""

    name: str
    nominal: float
    samples: NDArray[np.float64]


def render_noise(spreads: Sequence[Spread], label: str, title: str, format: Format = "png") -> bytes:
    """Return the image; the same samples give the same bytes. `label` names the axis with its unit."""
    figure = paper(WIDTH, MARGIN + ROW * max(2, len(spreads)))
    axes = figure.add_subplot()
    draw_noise(spreads, axes)
    axes.set_xlabel(label, parse_math=False)
    axes.set_title(title, loc="left", fontsize=11, parse_math=False)
    return saved(figure, format)


def draw_noise(spreads: Sequence[Spread], axes: Axes) -> None:
    """Draw a row for each schedule, first on top.

    It has a violin of the samples, a bar from p5 to p95, the median, and the nominal value.
    """
    for row, spread in enumerate(spreads):
        if np.ptp(spread.samples) > 0:  # a violin of one value has no density to estimate
            places = np.linspace(spread.samples.min(), spread.samples.max(), 200)
            density = GaussianKDE(spread.samples).evaluate(places)
            half = 0.4 * density / density.max()
            axes.fill_between(places, row - half, row + half, facecolor=BODY, edgecolor=LINE, linewidth=0.6)
        low, middle, high = np.percentile(spread.samples, [5, 50, 95])
        axes.plot([low, high], [row, row], color=LINE, linewidth=3, solid_capstyle="butt")
        axes.plot([middle], [row], "o", color="white", markeredgecolor=LINE, markersize=6)
        axes.plot([spread.nominal], [row], "D", color=NOMINAL, markersize=5)
    axes.set_yticks(range(len(spreads)), [spread.name for spread in spreads])
    axes.set_ylim(len(spreads) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right"]].set_visible(False)
    legend_under_axis(
        axes,
        [
            (Line2D([], [], linestyle="", marker="D", color=NOMINAL), "Without noise"),
            (Line2D([], [], linestyle="", marker="o", color="white", markeredgecolor=LINE), "Median"),
            (Line2D([], [], color=LINE, linewidth=3), "5th to 95th percentile"),
            (Patch(facecolor=BODY, edgecolor=LINE), "Samples"),
        ],
    )
