"""Writes the pictures of docs/placements.md: which stage is on which device, and the path of the micro-batches.

python -m docs.make_placements
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from pipesched.problem.passes import F
from pipesched.problem.placement import Placement, bidirectional, explicit, interleaved, linear, v_shape, wave
from pipesched.schedule.drawing.colours import shade

FOLDER = Path(__file__).parent / "images" / "placements"
PLACEMENTS = {
    "linear": linear(4),
    "interleaved": interleaved(4, 2),
    "v-shape": v_shape(4),
    "wave": wave(4, 4),
    "bidirectional": bidirectional(4),
    "list": explicit(3, [0, 1, 2, 0]),
}


def draw(placement: Placement, axes: Axes) -> None:
    """Draw a row for each device with a box for each of its stages, and arrows from each stage to the next on its
    chain."""
    width = max(map(len, placement.stages_of))
    down_and_up = len(placement.chains) > 1
    shades = placement.chain_index if down_and_up else [placement.chunk(s) for s in range(placement.stages)]
    centre = {s: (placement.chunk(s) + 0.5, placement.stage_device[s] + 0.5) for s in range(placement.stages)}
    for stage, (x, y) in centre.items():
        colour = shade(F, shades[stage], max(shades) + 1)
        axes.add_patch(Rectangle((x - 0.36, y - 0.34), 0.72, 0.68, facecolor=colour, edgecolor="#2b2b2b"))
        axes.text(x, y, f"stage {stage}", ha="center", va="center", fontsize=8)
    for stage, after in enumerate(placement.next):
        if after is not None:
            (x, y), (to_x, to_y) = centre[stage], centre[after]
            side = 0.36 * ((to_x > x) - (to_x < x))  # from the middle of a box to its edge, where the way is across
            arrow = FancyArrowPatch(
                (x + side, y),
                (to_x - side, to_y),
                arrowstyle="-|>",
                mutation_scale=11,
                shrinkA=0 if side else 17,  # points: as much, where the way is up or down
                shrinkB=0 if side else 17,
                color="#2f5f91",
            )
            axes.add_patch(arrow)
    axes.set(xlim=(0, width), ylim=(placement.devices, 0))
    axes.set_yticks([d + 0.5 for d in range(placement.devices)], [f"Device {d}" for d in range(placement.devices)])
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def main() -> None:
    """Write a picture of each placement."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, placement in PLACEMENTS.items():
        figure = Figure(figsize=(1.0 + 1.25 * max(map(len, placement.stages_of)), 0.62 * placement.devices), dpi=110)
        figure.set_layout_engine("constrained")
        draw(placement, figure.add_subplot())
        figure.savefig(FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
