"""Boxes with labels (micro-batch and task), as large as a box allows, left out where they would not be readable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import PolyCollection
from matplotlib.text import Text
from matplotlib.transforms import IdentityTransform
from numpy.typing import NDArray

from pipesched.deadline import SHORT, asking
from pipesched.schedule.drawing.colours import EDGE, LINE, RGB, ink_on
from plots.drawing.frame import points

LARGEST, SMALLEST = 9.0, 5.0  # points; below the smallest a number is left out
FILL = 0.82  # how much of its box a number may take, each way
INSTANT = 2.0  # points: width of the line of what takes no time


def draw_boxes(
    axes: Axes, corners: Sequence[Sequence[float]], colours: Sequence[RGB], labels: Sequence[tuple[str, str]]
) -> None:
    """Draw labelled boxes as one collection, which is fast for tens of thousands.

    `corners` are left, top, right, bottom of each box in data coordinates, `colours` their fills, `labels` (number,
    name), both as texts; a box without a number is a strip and has no outline. A box of no width is a line in its
    colour. The limits of the axes must be set before.
    """
    boxes = np.array(corners, dtype=np.float64).reshape(-1, 4)
    wide = [n for n, (number, _) in enumerate(labels) if number]
    left, right = axes.get_xlim()
    widths = boxes[wide, 2] - boxes[wide, 0]
    typical = float(np.median(widths)) / (right - left) * points(axes)[0] if len(widths) else 0.0
    # Narrow boxes get finer lines, or the lines would be all that is seen.
    line = min(LINE, 0.06 * typical)
    instant = boxes[:, 0] == boxes[:, 2]
    lines = [INSTANT if none else line if number else 0.0 for none, (number, _) in zip(instant, labels, strict=True)]
    axes.add_collection(
        PolyCollection(
            outlines(boxes),
            facecolors=colours,
            edgecolors=[colour if none else EDGE for none, colour in zip(instant, colours, strict=True)],
            linewidths=lines,
        ),
        autolim=False,
    )
    BoxNumbers(
        axes, [labels[n] for n in asking(wide, SHORT)], boxes[wide], [ink_on(colours[n]) for n in asking(wide, SHORT)]
    )


def outlines(boxes: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return the four corners of each box, an array of shape (4, 2), from its left, top, right and bottom."""
    return list(boxes[:, [0, 1, 0, 3, 2, 3, 2, 1]].reshape(-1, 4, 2))


class BoxNumbers(Artist):
    """Labels centred in boxes of `axes`; `corners` has left, top, right, bottom of each box in data coordinates.

    A label is a number and a name, which may be empty, both texts; `inks` are their colours. The name is added where
    both are readable, else only the number. The sizes are computed on every drawing, since only then layout, zoom and
    resolution of the output are known.
    """

    def __init__(
        self, axes: Axes, labels: Sequence[tuple[str, str]], corners: NDArray[np.float64], inks: Sequence[str]
    ) -> None:
        super().__init__()
        self._labels, self._corners, self._inks = labels, corners, inks
        self.set_zorder(3)
        self.set_in_layout(False)
        axes.add_artist(self)

    def draw(self, renderer: RendererBase) -> None:
        """Draw the labels; matplotlib calls this whenever the figure is drawn."""
        if self.get_visible():
            for text in asking(self.texts(renderer)):
                text.draw(renderer)
        self.stale = False

    def texts(self, renderer: RendererBase) -> Iterator[Text]:
        """Yield the labels that fit their boxes, placed in pixels."""
        if not self._labels:
            return
        left_top, right_bottom = self._pixels(self._corners[:, :2]), self._pixels(self._corners[:, 2:])
        seen = self._seen(left_top, right_bottom)
        if self.axes is not None:
            # Of a box that the axes cut off, the label is in what is left of it.
            left_top, right_bottom = (
                np.clip(one, self.axes.bbox.min, self.axes.bbox.max) for one in (left_top, right_bottom)
            )
        middle = (left_top + right_bottom) / 2
        boxes = np.abs(right_bottom - left_top)
        sizes = self._sizes("0" * max(len(number) for number, _ in asking(self._labels, SHORT)), boxes, renderer)
        named = self._named(boxes, np.flatnonzero(seen).tolist(), renderer)
        for index in map(int, np.flatnonzero(seen & (sizes >= SMALLEST))):
            text, size = named.get(index, (self._labels[index][0], sizes[index]))
            yield self._text(text, middle[index], size, self._inks[index])

    def _seen(self, left_top: NDArray[np.float64], right_bottom: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return the mask of boxes that are at least partly inside the axes, which excludes most of a zoomed picture.

        The corners of boxes are arrays of shape (boxes, 2), in pixels.
        """
        if self.axes is None:
            return np.ones(len(left_top), np.bool_)
        (x0, y0), (x1, y1) = self.axes.bbox.min, self.axes.bbox.max
        x, y = (np.sort(np.stack([left_top[:, n], right_bottom[:, n]]), axis=0) for n in range(2))
        inside: NDArray[np.bool_] = (x[0] < x1) & (x[1] > x0) & (y[0] < y1) & (y[1] > y0)
        return inside

    def _named(
        self, boxes: NDArray[np.float64], seen: list[int], renderer: RendererBase
    ) -> dict[int, tuple[str, float]]:
        """Return by its index, for each box with room for number and name, the text and its font size in points.

        `seen` are the indices of boxes in view. Of the two arrangements, one line or two, it is that which allows the
        larger size.
        """
        of_label: dict[tuple[str, str], list[int]] = {}
        for index in seen:
            if self._labels[index][1]:
                of_label.setdefault(self._labels[index], []).append(index)
        found: dict[int, tuple[str, float]] = {}
        for (number, name), own in asking(of_label.items()):
            for text in (f"{name} {number}", f"{name}\n{number}"):
                for index, size in zip(own, self._sizes(text, boxes[own], renderer).tolist(), strict=True):
                    if size >= max(SMALLEST, found.get(index, ("", 0.0))[1]):
                        found[index] = text, size
        return found

    def _sizes(self, text: str, boxes: NDArray[np.float64], renderer: RendererBase) -> NDArray[np.float64]:
        """Return the font size in points, at most `LARGEST`, at which a text fits each box.

        `boxes` has rows of width and height in pixels. Sizes are rounded down to half points, so that equal boxes get
        equal ones; they may be less than `SMALLEST`.
        """
        extent = self._text(text, np.zeros(2), LARGEST, "black").get_window_extent(renderer)
        fit = FILL * boxes / np.array([extent.width, extent.height])
        halves = np.floor(2 * LARGEST * fit.min(axis=1))  # whole half points, so that like boxes get like numbers
        sizes: NDArray[np.float64] = np.minimum(halves / 2, LARGEST)
        return sizes

    def _pixels(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.get_transform().transform(points))

    def _text(self, label: str, middle: NDArray[np.float64], size: float, ink: str) -> Text:
        text = Text(
            middle[0],
            middle[1],
            label,
            color=ink,
            fontsize=size,
            ha="center",
            va="center" if "\n" in label else "center_baseline",
            parse_math=False,
            transform=IdentityTransform(),
        )
        figure = self.get_figure()
        assert figure is not None, "an artist is drawn only as part of a figure"
        text.set_figure(figure)
        if self.axes is not None:
            text.set_clip_box(self.axes.bbox)
        return text
