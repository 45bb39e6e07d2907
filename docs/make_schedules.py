"""Writes docs/schedules.md and its pictures from the catalogue of published schedules.

python -m docs.make_schedules
"""

from __future__ import annotations

from pathlib import Path

from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.errors import DoesNotApply
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from plots.gantt import draw_gantt
from plots.render import render

FOLDER = Path(__file__).parent
PICTURES = FOLDER / "images" / "schedules"
DEVICES, MICROBATCHES = 4, 8
PLACEMENTS = ({"placement": "linear"}, {"placement": "interleaved", "chunks": 2}, {"placement": "v-shape"},
              {"placement": "wave", "chunks": 4}, {"placement": "bidirectional"})  # fmt: skip
# For schedules of unequal micro-batches, which all others take as well.
UNEQUAL = {"microbatch_scale": [2, 1, 1.5, 2.5, 1, 0.5, 1.5, 2], "microbatch_order": "free"}
# For schedules that hold less of activations.
OFFLOAD = {"memory": {"offload": {"out": 1, "in": 1}}}
PEERS = {"memory": {"offload": {"out": 1, "in": 1, "to": [3, 2, "host", "host"]}}}
RECOMPUTE = {"memory": {"recompute": [{"name": "full", "time": 1, "keeps": 0}]}}
# For schedules of pipelines side by side.
PIPELINES = {"pipelines": {"count": 2, "lost": [[0, 1]]}}
# For schedules of micro-batches of several pieces.
PIECES = {"microbatches": 4, "sequence_chunks": 2}
SLICES = {"microbatches": 2, "sequence_chunks": 4, "placement": "interleaved", "chunks": 2}
# For schedules of an output layer on all devices.
_PART = {"forward": 0.5, "backward": 0.25, "weight": 0.25}
SHARED = {"modules": {"head": {"placement": "shared", "follows": DEVICES - 1, "barriers": 2, "times": _PART}}}
MORE: tuple[dict[str, object], ...] = (UNEQUAL, OFFLOAD, RECOMPUTE, PIPELINES, PIECES, SLICES, SHARED, PEERS)


HEADER = f"""# Published schedules

What each needs, and the papers' bubble time and peak activations for equal stages and free transfers, tested against
the simulator; an activation holds M_B until B, and M_W from there until W. The pictures show {DEVICES} devices and
{MICROBATCHES} micro-batches with F = B = W = 1 (BW = 2), offload of 1 each way (of bpipe: from devices 0 and 1
to 3 and 2), recomputation of 1, factors of unequal micro-batches from 0.5 to 2.5, 4 micro-batches of 2 pieces or
2 of 4, two pipelines side by side of which the first has lost its second device, or an output layer of which each
device has a part.
`pipesched simulate PROBLEM --schedule NAME` has the figures for your own problem.
"""


def example(heuristic: Heuristic) -> Timeline:
    """Return the schedule's timeline on the first placement that it applies to, `ValueError` if there is none.

    It has 4 devices, 8 micro-batches (fewer of several pieces), F = B = W = 1 and free transfers.
    """
    reasons = []
    for placement in (*PLACEMENTS, *(placement | more for more in MORE for placement in PLACEMENTS[:2])):
        problem = _problem(placement)
        try:
            return simulate(problem, heuristic.order(problem))
        except DoesNotApply as reason:
            reasons.append(str(reason))
    raise ValueError(f"{heuristic.name} applies to none of the example placements: {reasons}")


def _problem(placement: dict[str, object]) -> Problem:
    times = {"forward": 1, "backward": 1, "weight": 1}
    return problem_from({"devices": DEVICES, "microbatches": MICROBATCHES, "times": times} | placement, "example")


def page() -> str:
    """Return the text of docs/schedules.md."""
    lines = [HEADER]
    for heuristic in HEURISTICS:
        forms = [f"bubble time: {heuristic.bubble}", f"peak: {heuristic.peak}"]
        if heuristic.bubble == heuristic.peak:  # there is no closed form
            forms = [heuristic.bubble]
        lines += [f"## {heuristic.name}", "", heuristic.reference, *(f"- {text}" for text in (heuristic.needs, *forms))]
        lines += ["", f"![{heuristic.name}](images/schedules/{heuristic.name}.png)", ""]
    return "\n".join(lines)


def main() -> None:
    """Write the page, and a picture of each schedule."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    (FOLDER / "schedules.md").write_text(page())
    for heuristic in HEURISTICS:
        picture = render(example(heuristic), draw_gantt, "png", None)
        (PICTURES / f"{heuristic.name}.png").write_bytes(picture)


if __name__ == "__main__":
    main()
