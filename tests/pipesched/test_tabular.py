"""Results as tables and pictures, and what is said of arguments of another kind."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pipesched
from pipesched import (
    BadInput,
    compare,
    explain,
    frontier,
    measure,
    pair,
    plan,
    plan_problem_from,
    problem_from,
    save,
    simulate,
    solve,
    sweep,
    validate,
)
from pipesched.results.comparison import Comparison
from pipesched.results.tabular import Tabular
from tests.support.counted import counted

SURE = counted(0.05)
TIMES = {"forward": 1.5, "backward": 1.5, "weight": 0.5}
PROBLEM = problem_from(
    {"name": "<b>it", "devices": 2, "microbatches": 3, "times": TIMES, "memory": {"capacity": 3, "activation": 1}}
)
LAYERS = [{"name": "layer", "count": 6, "forward": 1, "backward": 2}]
MODEL = plan_problem_from({"devices": 2, "microbatches": 4, "layers": LAYERS, "placement": "linear"})
RESULTS = {
    "solve": lambda: solve(PROBLEM, SURE),
    "compare": lambda: compare(PROBLEM, SURE, ["1f1b", "gpipe"]),
    "compare of a model": lambda: compare(MODEL, SURE, ["1f1b", "zb-h1"]),
    "plan": lambda: plan(MODEL, SURE),
    "frontier": lambda: frontier(PROBLEM, 2, SURE),
    "sweep": lambda: sweep(PROBLEM, {"microbatches": [2, 3]}, SURE),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_a_table_a_frame_and_a_picture(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result: Any = RESULTS[name]()
    assert isinstance(result, Tabular)
    assert len(repr(result)) < 250
    assert "\n" not in repr(result)
    page = result._repr_html_()
    assert page.count("<tr>") == len(result.records()) + 1
    assert "<b>" not in page
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    rows = result.to_frame()
    assert len(rows) == len(result.records())
    columns = {name for row in rows for name in row}
    assert "idle" not in columns or "idle_span" not in columns
    assert not any(isinstance(value, dict) for row in rows for value in row.values())
    assert any(isinstance(row["value"], float) for row in rows)
    drawn = result.plot()
    assert drawn._repr_png_().startswith(b"\x89PNG")
    assert drawn.save(tmp_path / "it.svg").read_bytes().startswith(b"<?xml")
    with pytest.raises(BadInput, match=r"it.gif: found the ending '.gif'; allowed: .png, .svg, .pdf"):
        drawn.save(tmp_path / "it.gif")
    assert repr(pickle.loads(pickle.dumps(result))) == repr(result)


def test_a_frame_without_pandas_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BadInput, match=r"to_frame: found no pandas; allowed: after .* install 'pandas'"):
        RESULTS["plan"]().to_frame()


def test_a_comparison_of_a_model_is_that_of_the_command() -> None:
    rows = RESULTS["compare of a model"]()
    assert {row.name for row in rows} == {"1f1b", "zb-h1", "free"}
    best = min(row.best.value for row in rows if row.fits)
    assert rows[0].best.value == best
    assert rows.records()[0]["value"] == float(best)


def test_a_comparison_is_still_a_tuple_of_candidates() -> None:
    rows = RESULTS["compare"]()
    assert isinstance(rows, Comparison)
    assert [row.name for row in rows] == ["1f1b", "gpipe", "pipesched"]
    assert rows[:1] == (rows[0],)


def test_a_sweep_takes_values_beside_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("devices: 2\nmicrobatches: 2\ntimes: {forward: 1, backward: 1}\nsweep: {microbatches: [1, 2]}\n")
    cells = sweep(path, {"times.forward": [1, 2]}, SURE, store=tmp_path / "known.sqlite")
    assert [(row["microbatches"], row["value"]) for row in cells.records()] == [(1, 4), (1, 6), (2, 6), (2, 9)]
    assert sweep(path, {"times.forward": [1, 2]}, SURE, store=tmp_path / "known.sqlite").read == 4
    assert not list(tmp_path.glob("*.sweep.sqlite"))


def test_a_pair_is_at_the_top() -> None:
    found = pair(PROBLEM, 0, 0, seconds=5)
    assert found.status == "optimal"
    assert {task.of.microbatch for order in found.orders.values() for task in order} == {0, 1}
    assert pipesched.best_pair is pair


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: plan("plan.yaml"),
            r"plan: found str; allowed: a model made of layers, as read_plan\(PATH\) returns it",
        ),
        (lambda: plan(PROBLEM), "plan: found Problem; allowed: a model made of layers"),
        (lambda: solve(MODEL), "solve: found PlanProblem; allowed: a Problem"),
        (lambda: compare("plan.yaml"), "compare: found str; allowed: a Problem, .* or a model made of layers"),
        (lambda: frontier("plan.yaml"), "frontier: found str; allowed: a Problem"),
        (lambda: sweep(3), "sweep: found int; allowed: the path"),
        (lambda: pair("p.yaml", 0, 0), "pair: found str; allowed: a Problem"),
        (lambda: explain(PROBLEM), "explain: found Problem; allowed: a Solution"),
        (lambda: simulate("p.yaml", None), "simulate: found str; allowed: a Problem"),
        (lambda: simulate(PROBLEM, "1f1b"), "simulate: schedule: found str; allowed: a Schedule"),
        (lambda: measure("p.yaml"), "measure: found str; allowed: a Timeline"),
        (lambda: validate("p.yaml"), "validate: found str; allowed: a Timeline"),
        (lambda: save("p.yaml", "s.json"), "save: found str; allowed: a Solution, a Timeline or a ScheduleFile"),
        (lambda: plan(MODEL, 30), r"limits: found int; allowed: Limits\(seconds=30\), or plan\(…, seconds=30\)"),
    ],
)
def test_what_is_of_another_kind_is_named_in_a_sentence(call: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        call()


def test_names_are_those_for_users() -> None:
    shown = {*dir(pipesched)}
    assert {"solve", "plan", "compare", "frontier", "sweep", "pair", "torch", "__version__"} <= shown
    assert not {"sys", "LazyNames", "annotations", "TYPE_CHECKING", "VERSION", "files", "lazy_names"} & shown
