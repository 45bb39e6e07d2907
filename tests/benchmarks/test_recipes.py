"""Published recipes beside the first answer of `layouts`."""

from __future__ import annotations

from benchmarks.measured.table import read_table
from benchmarks.recipes import RECIPES, page, recipe
from pipesched.files.model_configs.layouts import Layout


def test_the_first_answer_is_the_fastest_that_was_measured() -> None:
    """Of 28 layouts of a model of 13 billion parameters on 64 GPUs."""
    rows = {row.id: row for row in read_table()}
    found = recipe(rows["r050"], rows)
    best = min(row.seconds for row in rows.values() if row.group == rows["r050"].group and row.seconds)
    assert found.answer == Layout(1, 1, 1, 64, 1) and found.fits
    assert found.answer_measured == best == found.row.seconds
    assert "| llama-13b-128k | 64 A100 | TP1 PP1 DP64 | 26.5 |" in page([found])


def test_every_recipe_is_a_row_that_was_measured() -> None:
    rows = {row.id: row for row in read_table()}
    assert len({*RECIPES}) == len(RECIPES) >= 10 and all(rows[name].seconds for name in RECIPES)
