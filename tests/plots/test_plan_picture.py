"""The picture of a plan: a colour for each type of layer, and memory where the file speaks of it."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import plots.plan
from pipesched.files.plan_file import plan_problem_from
from plots.plan import render_plan
from solver.planning.plan import plan
from tests.support.counted import counted

TYPES = 9


def drawn(monkeypatch: pytest.MonkeyPatch, **keys: Any) -> Figure:
    layers = [{"name": f"type-{n}", "forward": 1, "backward": 2} for n in range(TYPES)]
    document: dict[str, Any] = {
        "devices": 2,
        "microbatches": 2,
        "layers": layers,
        "placement": "linear",
        "chunks": 1,
    } | keys
    document = {key: value for key, value in document.items() if value is not None}
    found = plan(plan_problem_from(document), counted(1))
    assert found.best is not None
    figures: list[Figure] = []
    monkeypatch.setattr(plots.plan, "saved", lambda figure, _: figures.append(figure) or b"")
    render_plan(found.problem, found.best)
    return figures[0]


def test_every_type_of_layer_has_its_own_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = drawn(monkeypatch).axes[0]
    assert len({to_hex(bar.get_facecolor()) for bar in layers.patches}) == TYPES


def test_memory_is_drawn_where_the_file_speaks_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [axes.get_title(loc="left") for axes in drawn(monkeypatch).axes][1:] == ["Time of a micro-batch"]
    with_memory = drawn(monkeypatch, memory={"capacity": 80, "unit": "GiB"})
    assert [axes.get_title(loc="left") for axes in with_memory.axes][1] == "Memory at the peak"


def test_layers_are_as_wide_as_they_take_time_on_their_device(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = [{"devices": 1, "speed": 1}, {"devices": 1, "speed": 0.5}]
    layers = drawn(monkeypatch, devices=None, cluster=cluster).axes[0]
    widths = [
        {bar.get_width() for bar in layers.patches if round(bar.get_y() + bar.get_height() / 2) == d} for d in (0, 1)
    ]
    assert widths == [{3}, {6}]


def test_an_encoder_is_drawn_with_its_own_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = {"name": "vision", "count": 2, "placement": "replicated", "forward": 2, "backward": 3, "serves": 1}
    layers = drawn(monkeypatch, encoder=encoder, partition="even").axes[0]
    assert len({to_hex(bar.get_facecolor()) for bar in layers.patches}) == TYPES + 1
    assert sorted(bar.get_width() for bar in layers.patches) == [3] * TYPES + [5] * 4


def test_gathering_reduction_and_step_have_their_own_times(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = [{"name": f"type-{n}", "forward": 1, "backward": 2, "gather": 1, "reduce": 3, "step": 2} for n in range(4)]
    parameters = {"gather": {"on": "dp"}, "reduce": {"on": "dp"}, "step": {}}
    *_, axes = drawn(monkeypatch, layers=layers, partition="even", parameters=parameters, objective="iteration").axes
    assert axes.get_title(loc="left") == "Time for parameters"
    assert sorted(bar.get_width() for bar in axes.patches) == [2, 2, 4, 4, 6, 6]
