"""The certified gap over time, a panel for each problem and a line for each variant of the engine measured on it."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from itertools import cycle
from math import ceil
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.reporting.record import Record, gap_over_time
from pipesched.files.atomic_write import write_whole

# Colours that colour-blind readers tell apart (Okabe and Ito), the whole engine in black and thicker.
STYLES: tuple[tuple[str, str], ...] = (
    ("black", "-"),
    ("#E69F00", "-"),
    ("#56B4E9", "-"),
    ("#009E73", "-"),
    ("#CC79A7", "-"),
    ("#0072B2", "-"),
    ("#E69F00", "--"),
    ("#56B4E9", "--"),
    ("#009E73", "--"),
    ("#CC79A7", "--"),
    ("#0072B2", "--"),
    ("#E69F00", ":"),
    ("#56B4E9", ":"),
    ("#009E73", ":"),
    ("#D55E00", ":"),
    ("#D55E00", "--"),
    ("#D55E00", "-"),
    ("#CC79A7", ":"),
)
COLUMNS = 3
SOONEST = 0.1  # seconds; what happens before is drawn there
SMALLEST = 0.1  # per cent; below it the axis is linear, so that 0, a proof, has a place


def draw(records: Mapping[str, Mapping[str, Record]], path: Path, seconds: float) -> None:
    """Write the picture; `records` by row and variant, `seconds` the time every solve had."""
    columns = min(COLUMNS, len(records))
    lines = ceil(len(records) / columns)
    figure = Figure(figsize=(5.4 * columns + 0.4, 2.6 * lines + 0.4), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True)
    histories = [record.history for variants in records.values() for record in variants.values() if record.history]
    end = max([seconds, *(history[-1][0] for history in histories)])
    for axes, (name, variants) in zip(panels.flat, records.items(), strict=False):
        _panel(axes, name, variants, end)
    for axes in panels.flat[len(records) :]:
        axes.set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel("certified gap (%)")
    for column in range(columns):
        lowest = max(line for line in range(lines) if line * columns + column < len(records))
        panels[lowest, column].set_xlabel("seconds")
        panels[lowest, column].tick_params(labelbottom=True)
    picture = BytesIO()
    figure.savefig(picture, format=path.suffix.lstrip(".").lower() or "png", dpi=150)
    write_whole(path, picture.getvalue())


def _panel(axes: Axes, name: str, variants: Mapping[str, Record], end: float) -> None:
    for (variant, record), (colour, dashes) in zip(variants.items(), cycle(STYLES), strict=False):
        moments = [(max(SOONEST, s), 100 * gap) for s, gap in gap_over_time(record)]
        if not moments:
            axes.plot([], [], color=colour, linestyle=dashes, label=variant)
            continue
        times, gaps = [s for s, _ in moments] + [end], [gap for _, gap in moments] + [moments[-1][1]]
        width = 2.2 if colour == "black" else 1.3
        axes.step(times, gaps, where="post", color=colour, linestyle=dashes, linewidth=width, label=variant)
        if gaps[-1] == 0:  # a dot where it was proved
            axes.plot(times[-2], 0, "o", color=colour, markersize=4, clip_on=False, zorder=4)
    axes.set_xscale("log")
    axes.set_xlim(SOONEST, end)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())  # within one decade it would name every tick
    axes.set_yscale("symlog", linthresh=SMALLEST, linscale=0.6)
    axes.set_ylim(0, 100)
    axes.set_yticks([0, SMALLEST, 1, 10, 100], labels=["0", f"{SMALLEST:g}", "1", "10", "100"])
    axes.set_title(name, fontsize=10)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False, fontsize=6, handlelength=1.6)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
