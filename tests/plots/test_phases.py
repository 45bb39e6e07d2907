"""The picture of three phases: its rows, what each phase copies, the memory of device and host."""

from __future__ import annotations

from functools import cache

import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from heuristics.catalogue import HEURISTICS
from pipesched.files.problem_file import problem_from
from pipesched.problem.passes import OFFLOAD, RELOAD, PassKind
from pipesched.schedule.drawing.colours import shade
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from plots.drawing.zoom import Window, window_of
from plots.phases import draw_phases
from plots.render import make_figure

ROWS = ["Computation", "Communication", "Offload", "Micro-batches", "Memory"]
COPIED = ["warm-up (offload)", "steady state (offload and onload)", "cool-down (load)"]


@cache
def kimi(copy: object = ("out", "back")) -> Timeline:
    """Two devices, two stages each, eight micro-batches; a copy takes two thirds of a slot."""
    on = list(copy) if isinstance(copy, tuple) else copy
    tasks = {
        "forward": [{"name": "attn", "time": 2}, {"name": "send", "on": "net", "time": 1}, {"name": "mlp", "time": 3}],
        "backward": [{"name": "mlp", "time": 4}, {"name": "send", "on": "net", "time": 1}, {"name": "attn", "time": 3}],
        "weight": [{"name": "w", "time": 3}],
    }
    document = {
        "devices": 2, "microbatches": 8, "placement": "interleaved", "chunks": 2, "streams": ["compute", "net"],
        "tasks": tasks, "memory": {"unit": "GB", "capacity": 5, "offload": {"out": 10, "in": 10, "on": on}},
    }  # fmt: skip
    problem = problem_from(document)
    return simulate(problem, HEURISTICS["kimi-k2-offload"].order(problem))


def drawn(timeline: Timeline, window: Window | None = None) -> tuple[Figure, Axes]:
    figure = make_figure(timeline, draw_phases, window=window, row=2.0)
    FigureCanvasAgg(figure).draw()
    return figure, figure.axes[0]


def heights(axes: Axes, kind: PassKind) -> set[tuple[float, float]]:
    """The top and bottom of the boxes of a kind on device 0, whichever chunk's."""
    colours = [shade(kind, number, 2) for number in range(2)]
    found = set()
    for one in axes.collections:
        if isinstance(one, PolyCollection) and len(one.get_facecolors()) == len(one.get_paths()):
            for path, face in zip(one.get_paths(), one.get_facecolors(), strict=True):
                ys = path.vertices[:, 1]
                if any(tuple(face[:3]) == pytest.approx(one) for one in colours) and ys.max() < 1:
                    found.add((round(ys.min(), 6), round(ys.max(), 6)))
    return found


def test_rows_are_those_of_the_report_whatever_the_streams_are_called() -> None:
    axes = drawn(kimi())[1]
    assert [label.get_text() for label in axes.get_yticklabels(minor=True)] == ROWS * 2
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Device 0", "Device 1"]


def test_copies_out_are_above_copies_back_and_one_stream_has_the_whole_row() -> None:
    axes = drawn(kimi())[1]
    ((top, middle),), ((same, bottom),) = heights(axes, OFFLOAD), heights(axes, RELOAD)
    assert top < middle == same < bottom
    axes = drawn(kimi("pcie"))[1]
    assert heights(axes, OFFLOAD) == heights(axes, RELOAD) == {(top, bottom)}


def named(axes: Axes) -> list[str]:
    (above,) = axes.child_axes
    left, right = axes.get_xlim()
    assert all(left < at < right for at in above.get_xticks())
    return [label.get_text() for label in above.get_xticklabels()]


def test_phases_are_named_with_what_they_copy_also_in_a_part() -> None:
    assert named(drawn(kimi())[1]) == COPIED
    assert named(drawn(kimi(), window_of(kimi(), "period"))[1]) == COPIED[1:2]
    last = window_of(kimi(), "150:")
    assert named(drawn(kimi(), last)[1])[-1] == COPIED[2]


def test_memory_of_device_and_host_is_written_beside_it() -> None:
    """The device holds four of the five that there is room for."""
    axes = drawn(kimi())[1]
    notes = [note.get_text() for note in axes.findobj(Annotation) if note.get_text()]
    assert [note.splitlines()[0] for note in notes] == ["device 4"] * 2
    assert all(note.splitlines()[1].startswith("host ") for note in notes)
    legend = axes.get_legend()
    assert legend is not None
    said = [text.get_text() for text in legend.get_texts()]
    assert "Room for activations" in said
    assert "Activations held (a row is 5 GB high)" in said
