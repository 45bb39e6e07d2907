"""Maps of the atlas: for each number of devices the best published schedule of every point, and its excess."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from benchmarks.atlas.grid import LENGTHS, MEMORIES, RATIOS, TRANSFERS
from benchmarks.atlas.row import Row
from plots.render import saved

# Excess over the best order, up to which a colour goes: one colour for optimal, then from light to dark.
STEPS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_OPTIMAL = "#e3edf7"
# Of viridis, reversed: its lightness falls evenly, so that it reads in grey and for every kind of colour vision.
_SHADES = ("#fde725", "#a0da39", "#4ac16d", "#1fa187", "#277f8e", "#365c8d", "#440154")
_NO_PUBLISHED, _UNKNOWN = "#e0e0e0", "#ffffff"
_ON_DARK, _ON_LIGHT = "#fefefe", "#1c1f23"
_DARK_FROM = 3  # of the shades
_PANEL = (4.3, 2.5)  # inches


def draw(rows: Sequence[Row], devices: int) -> bytes:
    """The map of one number of devices: a panel for each ratio of times and transfer, memory against m/p in each."""
    figure = Figure(figsize=(_PANEL[0] * len(RATIOS) + 1, _PANEL[1] * len(TRANSFERS) + 1), layout="constrained")
    grid = figure.subplots(len(TRANSFERS), len(RATIOS), squeeze=False, sharex=True, sharey=True)
    by_place = defaultdict[tuple[Fraction, str], list[Row]](list)
    for row in rows:
        by_place[row.point.family.transfer, row.point.family.ratio].append(row)
    for y, transfer in enumerate(TRANSFERS):
        for x, ratio in enumerate(RATIOS):
            axes = grid[y, x]
            split = "" if RATIOS[ratio][2] else ", not split"
            axes.set_title(f"F:B{':W' if not split else ''} {ratio}{split}; transfer {_text(transfer)} F", fontsize=10)
            _panel(axes, by_place[transfer, ratio])
            if x == 0:
                axes.set_ylabel("memory (1: peak of 1F1B)")
            if y == len(TRANSFERS) - 1:
                axes.set_xlabel("micro-batches a device, m/p")
    figure.suptitle(
        f"{devices} devices: the best published schedule that fits, and how much longer it takes than the best order",
        fontsize=12,
    )
    _legend(figure, grid, len(rows) < grid.size * len(LENGTHS) * len(MEMORIES))
    return saved(figure, "png")


def _panel(axes: Axes, rows: Sequence[Row]) -> None:
    axes.set_xlim(-0.5, len(LENGTHS) - 0.5)
    axes.set_ylim(-0.5, len(MEMORIES) - 0.5)
    axes.set_xticks(range(len(LENGTHS)), [str(length) for length in LENGTHS])
    axes.set_yticks(range(len(MEMORIES)), [_text(memory) for memory in MEMORIES])
    axes.tick_params(length=0)
    axes.set_facecolor(_UNKNOWN)
    for row in rows:
        place = LENGTHS.index(row.point.family.length), MEMORIES.index(row.point.memory)
        colour, dark = _colour(row)
        corner = place[0] - 0.5, place[1] - 0.5
        axes.add_patch(Rectangle(corner, 1, 1, facecolor=colour, edgecolor="#ffffff", linewidth=1.5))
        axes.text(
            *place, cell_text(row), ha="center", va="center", fontsize=6.6, color=_ON_DARK if dark else _ON_LIGHT,
            linespacing=1.15,
        )  # fmt: skip


def cell_text(row: Row) -> str:
    """The text of a point: schedule and excess, `≥` where the best order is not proved optimal."""
    if row.excess is None:
        return "none fits"
    name = row.fitting[0].schedule.replace("generalised", "general.")
    if row.excess == 0:
        return f"{name}\noptimal" if row.proved else f"{name}\nequal, open"
    return f"{name}\n{'' if row.proved else '≥ '}+{100 * row.excess:.1f} %"


def _colour(row: Row) -> tuple[str, bool]:
    """The colour of a point, and whether text on it is light."""
    if row.excess is None:
        return _NO_PUBLISHED, False
    if row.excess == 0:
        return _OPTIMAL, False
    step = int(np.searchsorted(STEPS[1:], row.excess))
    return _SHADES[step], step >= _DARK_FROM


def _legend(figure: Figure, grid: np.ndarray, unfinished: bool) -> None:
    shades = ListedColormap(_SHADES)
    norm = BoundaryNorm([*(100 * step for step in STEPS), 150], len(_SHADES))
    bar = figure.colorbar(
        ScalarMappable(norm, shades), ax=grid, shrink=0.7, pad=0.015, spacing="uniform", label="longer by, %"
    )
    bar.set_ticks([100 * step for step in STEPS], labels=[f"{100 * step:g}" for step in STEPS])
    handles = [
        Patch(facecolor=_OPTIMAL, label="as good as the best order"),
        Patch(facecolor=_NO_PUBLISHED, label="no published schedule fits the memory"),
    ]
    handles += [Patch(facecolor="white", edgecolor="black", label="not searched yet")] if unfinished else []
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)


def _text(share: Fraction) -> str:
    """A share in a title or on an axis: `¼`, `0.05`."""
    return {Fraction(1, 4): "¼", Fraction(1, 2): "½", Fraction(3, 4): "¾"}.get(share, f"{float(share):g}")
