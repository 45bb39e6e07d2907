"""The pictures of a sweep: those that its axes allow, with all that is to be seen, from cells that no search made."""

from __future__ import annotations

import pytest

from pipesched.sweeps.table import Table
from plots.sweeps.bubble import render_bubble
from plots.sweeps.facets import panels
from plots.sweeps.makespan_span import render_makespan_span
from plots.sweeps.memory import published_places
from plots.sweeps.pictures import pictures
from tests.support.sweeps import outcome, published, sweep, table


def swept(*options: str, gap: float = 1.0) -> Table:
    """Cells whose times fall with memory and rise with all else; the last one has no schedule."""
    of = sweep(*options)
    found = []
    for cell in of.cells:
        memory = float(cell.capacities[0] or 1)
        rest = sum(float(v) for n, v in cell.at if n != "memory" and not isinstance(v, str))  # type: ignore[arg-type]
        value = 40 / memory + rest + 10
        known = (published("1f1b", value * 1.2, memory), published("gpipe", value * 1.5, memory + 9, fits=False))
        found.append(outcome(round(value, 3), round(value * gap, 3), published=known))
    return table(of, [*found[:-1], outcome(None)])


def texts(svg: bytes) -> str:
    return svg.decode()


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("memory=1..4",), {"memory", "makespan-span"}),
        (("memory=1..4", "placement=linear,v-shape"), {"memory", "makespan-span"}),
        (("microbatches=2,4,8", "transfer=0,1"), {"bubble-micro-batches", "bubble-transfer", "makespan-span", "ratio"}),
        (("placement=linear,v-shape",), {"makespan-span"}),
        (("devices=2,4", "microbatches=1p,2p", "memory=1p,2p"),
         {"memory", "bubble-devices", "bubble-micro-batches", "makespan-span", "ratio"}),
    ],
)  # fmt: skip
def test_the_axes_choose_the_pictures(
    options: tuple[str, ...], names: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("memory", "bubble", "makespan_span", "ratio"):
        monkeypatch.setattr(f"plots.sweeps.pictures.render_{kind}", lambda *_: b"")
    assert set(pictures(swept(*options), "svg")) == {f"{name}.svg" for name in names}


def test_no_picture_of_nothing() -> None:
    assert pictures(table(sweep("memory=1,2"), [outcome(None)] * 2)) == {}


def test_values_without_any_schedule_say_so() -> None:
    found = table(sweep("microbatches=2,4", "placement=linear,v-shape"), [outcome(20.0, 20.0), outcome(None)] * 2)
    svg = texts(pictures(found, "svg")["makespan-span.svg"])
    assert "v-shape: no schedule" in svg and "linear: no schedule" not in svg


def test_one_series_has_a_line_for_each_published_schedule() -> None:
    found = swept("microbatches=2,4,8", gap=0.9)
    svg = texts(render_bubble(found, found.sweep.axes.axes[0], "svg"))
    assert "1f1b" in svg and "gpipe" not in svg  # which does not fit
    assert (
        "at the proved bound" in svg and "Idle (mean over devices), %" in svg and "bubble rate (busiest device)" in svg
    )


def test_the_same_table_gives_the_same_bytes() -> None:
    assert pictures(swept("memory=1..4"), "svg") == pictures(swept("memory=1..4"), "svg")


def test_the_figures_of_the_heat_map_and_what_is_not_proved() -> None:
    svg = texts(pictures(swept("devices=2,4", "microbatches=1p,2p", gap=0.9), "svg")["ratio.svg"])
    assert svg.count("≥ 1.200") == 3  # and the fourth cell has no schedule
    assert "no schedule" in svg and "no published schedule fits" not in svg
    svg = texts(pictures(swept("devices=2,4", "microbatches=1p,2p"), "svg")["ratio.svg"])
    assert "1.200" in svg and "≥" not in svg


def test_only_published_schedules_that_fit_are_shown() -> None:
    found = swept("memory=1..4")
    (panel,) = panels(found, found.sweep.axes.axes[0])
    (series,) = panel.series
    assert [name for _, _, name in published_places(series, 99)] == ["1f1b"] * 3
    assert [float(x) for x, _ in series.rows] == [1, 2, 3, 4]


def test_what_is_not_shown_is_said() -> None:
    found = swept("memory=1", "transfer=0,1", "microbatches=1..8")
    assert "2 more are not shown" in texts(render_makespan_span(found, found.sweep.axes.axes[0], "svg"))
