"""Published recipes beside the first answer of `layouts`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks import recipes
from benchmarks.measured.table import read_table
from benchmarks.recipes import RECIPES, _layout_text, alternatives, page, recipe
from pipesched.files.model_configs.layouts import Layout
from targets.layout_race import LayoutRace


def test_the_first_answer_is_the_fastest_that_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 28 layouts of a model of 13 billion parameters on 64 GPUs."""
    races, first_plans = list[LayoutRace](), recipes.first_plans

    def raced_once(*asked: Any) -> LayoutRace:
        races[:] = races or [first_plans(*asked)]
        return races[0]

    monkeypatch.setattr(recipes, "first_plans", raced_once)
    rows = {row.id: row for row in read_table()}
    every = [*rows.values()]
    found = recipe(rows["r050"], every)
    best = min(row.seconds for row in rows.values() if row.group == rows["r050"].group and row.seconds)
    assert found.answer == Layout(1, 1, 1, 64, 1) and found.fits
    assert found.answer_measured == pytest.approx(best) == found.row.seconds
    # A run of twice the batch counts by the time of a sequence.
    doubled = replace(found.row, microbatches=2 * found.row.microbatches, seconds=1.8 * best)
    assert recipe(rows["r050"], [*every, doubled]).answer_measured == pytest.approx(0.9 * best)
    assert "| llama-13b-128k | 64 A100 | TP1 PP1 DP64 | 26.5 |" in page([found])


def test_every_recipe_is_a_row_that_was_measured() -> None:
    rows = {row.id: row for row in read_table()}
    assert len({*RECIPES}) == len(RECIPES) >= 10 and all(rows[name].seconds for name in RECIPES)


def test_where_the_first_by_prediction_stands_among_measured_layouts() -> None:
    rows = [row for row in read_table() if row.model == "llama3-405b-l4" and row.seconds and row.group]
    same = [row for row in rows if row.sequence == 4096]
    head, _, line = alternatives(same).splitlines()
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert head.count("|") == line.count("|") and cells[:2] == ["llama3-405b-l4", "8 B200"]
    assert cells[4] == cells[5] and cells[6:8] == ["1", "0.0"] and float(cells[8]) > 0
    slower = [replace(row, seconds=(row.seconds or 0) * 3) if _layout_text(row) == cells[5] else row for row in same]
    assert alternatives(slower).splitlines()[2].split("|")[7].strip() == str(len(same))
