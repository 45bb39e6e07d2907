"""Labels next to the marks of a plot, placed by textalloc without overlap, with a thin line to a distant mark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import textalloc
from matplotlib.artist import Artist
from matplotlib.axes import Axes

SIZE = 7.5  # points
NEAR, FAR = 0.012, 0.35  # of the axes: how near and how far from its mark a name may stand


def label(axes: Axes, marks: Sequence[tuple[float, float, str]], colour: str) -> None:
    """Label every mark (x, y, name), in data coordinates, clear of the marks and lines of the axes.

    Marks at one place share a label. The axes must have a line. To be called last, when their limits and layout are
    final.
    """
    names: dict[tuple[float, float], list[str]] = {}
    for x, y, name in marks:
        names.setdefault((x, y), []).append(name)
    if not names:
        return
    before = axes.get_autoscale_on()
    axes.set_autoscale_on(False)
    lines, dots = _drawn(axes)
    found = textalloc.allocate(
        axes,
        [x for x, _ in names],
        [y for _, y in names],
        [", ".join(names_there) for names_there in names.values()],
        x_scatter=[x for x, _ in dots],
        y_scatter=[y for _, y in dots],
        x_lines=[line[:, 0] for line in lines],
        y_lines=[line[:, 1] for line in lines],
        textsize=SIZE,
        textcolor=colour,
        linecolor=colour,
        linewidth=0.5,
        min_distance=NEAR,
        max_distance=FAR,
        nbr_candidates=2000,
        avoid_label_lines_overlap=True,
        parse_math=False,
    )
    for text in found[2]:
        assert isinstance(text, Artist)
        text.set_in_layout(False)
    axes.set_autoscale_on(before)


def _drawn(axes: Axes) -> tuple[list[np.ndarray], list[tuple[float, float]]]:
    """Return the lines as drawn and the positions of marks, in data coordinates.

    Lines are arrays of (x, y) with a corner for each step.
    """
    back = axes.transData.inverted()
    lines: list[np.ndarray] = []
    dots: list[tuple[float, float]] = []
    for line in axes.get_lines():
        corners = np.asarray(line.get_transform().transform_path(line.get_path()).vertices)
        places = np.asarray(back.transform(corners))
        if line.get_linestyle() != "None":
            lines.append(places)
        if line.get_marker() not in (None, "None", ""):
            dots += [(float(x), float(y)) for x, y in places]
    return lines, dots
