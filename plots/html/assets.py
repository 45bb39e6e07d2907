"""Script and style of the interactive chart as texts, assembled from uPlot (`vendor/`) and the parts in `chart/`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_UPLOT = _FOLDER / "vendor" / "uplot-1.6.32"


@cache
def script() -> str:
    """Return plain JavaScript that defines `uPlot` and `pipesched.chart(element, document, options)`."""
    # In any order, since they hold nothing but definitions; but last the one that makes `pipesched.chart` known.
    files = sorted((_FOLDER / "chart").glob("*.js"), key=lambda file: (file.stem == "chart", file.name))
    parts = [_read(file) for file in files]
    return "\n".join([_read(_UPLOT / "uPlot.iife.min.js"), '(() => {\n"use strict";', *parts, "})();\n"])


@cache
def style() -> str:
    """Return the CSS that the chart needs."""
    return _read(_UPLOT / "uPlot.min.css") + "\n" + _read(_FOLDER / "chart" / "chart.css")


@cache
def page_style() -> str:
    """Return the CSS of a page around charts."""
    return _read(_FOLDER / "page" / "page.css")


@cache
def page_script(start: str) -> str:
    """Return the script of a page, which runs the file `start` in the folder `page`."""
    return _read(_FOLDER / "page" / "unpack.js") + "\n" + _read(_FOLDER / "page" / start)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
