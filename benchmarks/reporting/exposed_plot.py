"""The share of communication that schedules expose, over communication as a multiple of computation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from pipesched.files.atomic_write import write_whole
from plots.render import saved

# Colours that colour-blind readers tell apart (Okabe and Ito); ours in black and thicker, what is proved in grey.
COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")


def draw(ratios: Sequence[float], shares: Mapping[str, Sequence[float]], path: Path) -> None:
    """Write the picture; `shares` in per cent by name, an entry for each ratio, the last of them what is proved."""
    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    axes = figure.subplots()
    *names, least = shares
    colours = iter(COLOURS)
    for name in names:
        ours = name.startswith("ours")
        dashes = "--" if name.endswith("v-shape") else "-"
        axes.plot(
            ratios, shares[name], dashes, marker="o", markersize=3, label=name,
            color="black" if ours else next(colours), linewidth=2.2 if ours else 1.3,
            clip_on=False, zorder=3,
        )  # fmt: skip
    axes.fill_between(ratios, 0, shares[least], color="0.85", label=least, linewidth=0)
    axes.set_xlabel("communication / computation")
    axes.set_ylabel("exposed communication (%)")
    axes.set_xlim(min(ratios), max(ratios))
    axes.set_ylim(0, 100)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    write_whole(path, saved(figure))
