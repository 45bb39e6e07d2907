"""Benchmarks of `layouts` and `calibrate`: their figures are what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import calibration, layouts
from benchmarks.measured.table import Row
from benchmarks.reporting.page import begin
from pipesched.errors import BadInput
from pipesched.files.model_configs.hardware_table import DEVICES
from targets.layout_race import LayoutParams


def test_the_first_pass_of_the_smallest(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("targets.layout_race._PARAMS", LayoutParams(first_share=100))  # however slow the machine is
    assert layouts.main(["--gpus", "8"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| llama3-8b | 8 | 20 | ")]
    assert len(lines) == 1
    found = layouts.answer(layouts.SUBJECTS[0], 1)
    best = min(row.total for row in found.rows)
    assert float(lines[0].split("|")[7]) >= round(best, 1) >= found.step_lower_bound


def test_a_table_without_some_of_its_rows_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, before = tmp_path / "layouts.md", layouts.PAGE.read_text()
    page.write_text(before)
    monkeypatch.setattr(layouts, "PAGE", page)
    monkeypatch.setattr(layouts, "searched", lambda *_: ["found"] * len(layouts.SEARCH_HEAD))
    with pytest.raises(BadInput, match="--write: found with --gpus 1, which leaves rows out"):
        layouts.main(["--gpus", "1", "--write"])
    assert page.read_text() == before
    assert layouts.main(["--gpus", "1", "--longer", "9", "--write"]) == 0
    of_search = begin("python -m benchmarks.layouts --longer 3600 --write")
    assert page.read_text().partition(of_search)[0] == before.partition(of_search)[0]
    assert "| found |" in page.read_text()


def test_published_runs_predict_others_of_their_source_better_than_the_table() -> None:
    split = next(one for one in calibration.splits() if one.fitted[0].model == "zb-1.5b")
    chosen: list[Row] = [*split.fitted, *split.others]
    assert len({row.id for row in chosen}) == len(chosen) == 12 and len(split.fitted) == 3
    assert len({(row.gpu, row.source.split(" ")[0]) for row in chosen}) == 1
    device, own = calibration.calibrated(split).device, DEVICES[split.fitted[0].gpu]
    assert calibration.mean_error(split.others, device) < 0.5 * calibration.mean_error(split.others, own)
