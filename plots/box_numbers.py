"""The micro-batch numbers in the boxes: each as large as its box allows, and left out where it would not be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.text import Text
from matplotlib.transforms import IdentityTransform
from numpy.typing import NDArray

LARGEST, SMALLEST = 9.0, 5.0  # points; below the smallest a number is left out
FILL = 0.82  # how much of its box a number may take, each way


class BoxNumbers(Artist):
    """Numbers centred in boxes; `corners` holds left, top, right, bottom of each box in data coordinates.

    The sizes are computed on every drawing, since only then the layout, the zoom and the output's resolution are known.
    """

    def __init__(self, axes: Axes, numbers: Sequence[int], corners: NDArray[np.float64], inks: Sequence[str]) -> None:
        super().__init__()
        self._numbers, self._corners, self._inks = numbers, corners, inks
        self.set_zorder(3)
        self.set_in_layout(False)
        axes.add_artist(self)

    def draw(self, renderer: RendererBase) -> None:
        """Called by matplotlib whenever the figure is drawn."""
        if self.get_visible():
            for text in self.texts(renderer):
                text.draw(renderer)
        self.stale = False

    def texts(self, renderer: RendererBase) -> Iterator[Text]:
        """The numbers that fit their boxes, placed in pixels."""
        if not len(self._numbers):
            return
        left_top, right_bottom = self._pixels(self._corners[:, :2]), self._pixels(self._corners[:, 2:])
        middle = (left_top + right_bottom) / 2
        sizes = self._sizes(np.abs(right_bottom - left_top), renderer)
        for index in map(int, np.flatnonzero(sizes >= SMALLEST)):
            yield self._text(str(self._numbers[index]), middle[index], sizes[index], self._inks[index])

    def _sizes(self, boxes: NDArray[np.float64], renderer: RendererBase) -> NDArray[np.float64]:
        """The font size for each box, the same for all boxes of one size: that of the longest number."""
        longest = "0" * len(str(max(self._numbers)))
        extent = self._text(longest, np.zeros(2), LARGEST, "black").get_window_extent(renderer)
        fit = FILL * boxes / np.array([extent.width, extent.height])
        halves = np.floor(2 * LARGEST * fit.min(axis=1))  # whole half points, so that like boxes get like numbers
        sizes: NDArray[np.float64] = np.minimum(halves / 2, LARGEST)
        return sizes

    def _pixels(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.get_transform().transform(points))

    def _text(self, number: str, middle: NDArray[np.float64], size: float, ink: str) -> Text:
        text = Text(
            middle[0],
            middle[1],
            number,
            color=ink,
            fontsize=size,
            ha="center",
            va="center_baseline",
            transform=IdentityTransform(),
        )
        figure = self.get_figure()
        assert figure is not None, "an artist is drawn only as part of a figure"
        text.set_figure(figure)
        if self.axes is not None:
            text.set_clip_box(self.axes.bbox)
        return text
