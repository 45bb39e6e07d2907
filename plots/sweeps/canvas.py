"""The canvas of all pictures of a sweep: a figure with panels, a title, and a legend under all of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from pipesched.problem.formatting import plain
from plots.drawing.frame import CHARACTER, Handle
from plots.render import paper

LOGARITHMIC = 4  # an axis whose numbers differ by more than this factor is logarithmic
_PANEL = (7.6, 4.6)  # inches, of one alone
_SMALL = (4.6, 3.5)  # and of several
_LEGEND = 9.0  # points


def figure_of_panels(titles: Sequence[str], rows_each: Sequence[float] = (1.0,)) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure with a panel for each title, and for each panel its axes from top to bottom.

    A panel has one pair of axes for each of `rows_each`, of these relative heights.
    """
    number = len(titles)
    across = 1 if number == 1 else 2 if number in (2, 4) else min(number, 3)
    down = ceil(number / across)
    width, height = _PANEL if number == 1 else _SMALL
    figure = paper(across * width, down * height * sum(rows_each))
    grid = figure.subplots(down * len(rows_each), across, squeeze=False, height_ratios=list(rows_each) * down)
    found = []
    for n in range(number):
        column = [grid[len(rows_each) * (n // across) + k, n % across] for k in range(len(rows_each))]
        if number > 1:
            column[0].set_title(titles[n], loc="left", fontsize=9.5, parse_math=False)
        for axes in column[:-1]:
            axes.sharex(column[-1])
            axes.tick_params(axis="x", labelbottom=False)
        for axes in column:
            axes.spines[["top", "right"]].set_visible(False)
        found.append(column)
    shown = {id(axes) for column in found for axes in column}
    for axes in np.asarray(grid).ravel():
        if id(axes) not in shown:
            axes.set_axis_off()
    return figure, found


def spread_out(axes: Axes, both: bool = False) -> None:
    """Make the vertical axis (with `both` also the horizontal one) logarithmic where its data differ by a large factor.

    Numbers are written plainly. To be called last, when the data are drawn.
    """
    for name, axis in (("y", axes.yaxis), ("x", axes.xaxis))[: 1 + both]:
        low, high = axes.dataLim.intervaly if name == "y" else axes.dataLim.intervalx
        if low > 0 and high > LOGARITHMIC * low:
            axes.set(**{f"{name}scale": "log", f"{name}lim": (low / 1.08, high * 1.08)})
            axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
            axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(lambda number, _: plain(number)))


def entitle(figure: Figure, title: str, subtitle: str, left_out: int = 0) -> None:
    """Set a title of two lines over all panels; the second says how many panels are left out, if any."""
    more = f" · {left_out} more are not shown" if left_out else ""
    figure.suptitle(f"{title}\n{subtitle}{more}", x=0.01, ha="left", fontsize=11, parse_math=False)


def legend(figure: Figure, entries: Sequence[tuple[Handle, str]]) -> None:
    """Draw the legend under all panels, in as many columns as the figure is wide."""
    widths = [(CHARACTER * len(text) + 5) * _LEGEND for _, text in entries]
    room = 72 * figure.get_figwidth()
    columns = len(entries) if sum(widths) <= room else max(1, int(room / max(widths)))
    made = figure.legend(
        [handle for handle, _ in entries if isinstance(handle, Artist)],
        [text for _, text in entries],
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=_LEGEND,
    )
    for text in made.get_texts():
        text.set_parse_math(False)
