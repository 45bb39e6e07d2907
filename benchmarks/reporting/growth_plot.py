"""Seconds to a gap over the passes of a problem: a panel for each family, a line for each number of devices."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipesched.files.atomic_write import write_whole

# Passes, seconds, and whether the gap was reached in them.
Curve = list[tuple[int, float, bool]]

# Colours that colour-blind readers tell apart (Okabe and Ito), and markers, by number of devices in turn.
_STYLES = (("black", "o"), ("#E69F00", "s"), ("#0072B2", "^"), ("#009E73", "D"), ("#CC79A7", "v"))
_SOONEST = 0.01


def draw(families: Mapping[str, Mapping[int, Curve]], path: Path) -> None:
    """Write the picture."""
    figure = Figure(figsize=(7.6, 6.2), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, (name, curves) in zip(panels.flat, families.items(), strict=True):
        _panel(axes, name, curves)
    for axes in panels[:, 0]:
        axes.set_ylabel("seconds to a gap of 1 %")
    for axes in panels[1]:
        axes.set_xlabel("passes")
    handles = {label: one for axes in panels.flat for one, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        handles.values(), handles.keys(), loc="outside upper center", ncols=4, frameon=False, fontsize=9, markerscale=1
    )
    picture = BytesIO()
    figure.savefig(picture, format=path.suffix.lstrip(".").lower() or "png", dpi=150)
    write_whole(path, picture.getvalue())


def _panel(axes: Axes, name: str, curves: Mapping[int, Curve]) -> None:
    for (devices, curve), (colour, marker) in zip(curves.items(), _STYLES, strict=False):
        x, y = [passes for passes, _, _ in curve], [max(_SOONEST, seconds) for _, seconds, _ in curve]
        axes.plot(x, y, color=colour, linewidth=1, marker=marker, markersize=5, label=f"p = {devices}")
        open_ = [(a, b) for a, b, (_, _, reached) in zip(x, y, curve, strict=True) if not reached]
        axes.plot(*zip(*open_, strict=True) if open_ else ([], []), color=colour, marker=marker, markersize=5,
                  linestyle="", markerfacecolor="white")  # fmt: skip
    axes.plot([], [], color="grey", marker="o", linestyle="", markerfacecolor="white", label="not reached")
    # What is linear in the passes, through 1 second for 20,000 of them.
    axes.plot([200, 2_000_000], [0.01, 100], color="grey", linewidth=0.8, linestyle=":", label="50 µs a pass")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(_SOONEST, 40)
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    axes.set_title(name, fontsize=10)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
