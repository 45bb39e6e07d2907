"""docs/runtimes.md: what is written there to be tested is, by the test it names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from docs.make_runtimes import PAGE, page, refuses
from docs.tested_runtimes import FEATURES, REFUSED, RUNTIMES, SETTINGS, Cell

ROOT = Path(__file__).resolve().parents[2]
CELLS = sorted({cell for one in FEATURES for cell in one.cells.values()} | {cell for _, cell in SETTINGS})


def test_the_page_is_what_is_made() -> None:
    assert PAGE.read_text() == page()


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.where}[{cell.case}]")
def test_every_test_that_is_named_is_there(cell: Cell) -> None:
    file, _, test = cell.where.partition("::")
    text = (ROOT / file).read_text()
    if not test:
        return
    assert test in {one.name for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)}
    support = re.findall(r"from tests\.support\.(\w+) import", text)
    support += [more for one in support for more in re.findall(r"from tests\.support\.(\w+) import", _support(one))]
    assert any(cell.case in one for one in (text, *map(_support, support)))


def _support(name: str) -> str:
    return (ROOT / "tests" / "support" / f"{name}.py").read_text()


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_what_is_trained_is_not_refused(feature: object) -> None:
    for runtime in RUNTIMES:
        cell = feature.cells.get(runtime)  # type: ignore[attr-defined]
        if cell is not None and cell.how != REFUSED:
            assert not refuses(feature, runtime), runtime  # type: ignore[arg-type]
