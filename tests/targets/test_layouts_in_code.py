"""`layouts` from Python: the command's rows as objects, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipesched import BadInput, layouts
from tests.support.published_models import PUBLISHED


@pytest.mark.usefixtures("no_shared_time_is_spent")
def test_rows_are_objects(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(PUBLISHED["Llama 3.1 8B"][0]))
    found = layouts(
        path, gpus=8, hardware="h100-80gb", batch=16, microbatch_size=[1, 2], sizes={"tensor": 2}, runtime="megatron",
        seconds=0.2,
    )  # fmt: skip
    best, one = found.rows[0], found.recommended
    assert one is not None and one in found.rows and one.fits and one.total <= 1.02 * best.total
    assert {row.tensor for row in found.rows} == {2} and {row.microbatch_size for row in found.rows} == {1, 2}
    assert one.step is not None and one.total == one.step["total"] and one.searched == "exact"
    assert found.records()[0]["step"] == best.step
    assert "layout" not in repr(found) and f"step {round(one.total, 3):g}"[:8] in repr(found)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"gpus": 0}, "layouts: gpus: found 0"),
        ({"sizes": {"tensr": 2}}, "layouts: sizes: found tensr"),
        ({"runtime": "megatronn"}, "megatronn"),
        ({"batch": None}, "--batch, --microbatches"),
        ({"hardware": "h1000"}, "--hardware: found 'h1000'"),
    ],
)
def test_what_is_refused(more: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(PUBLISHED["Llama 3.1 8B"][0]))
    words: dict[str, Any] = {"gpus": 8, "hardware": "h100-80gb", "batch": 16} | more
    with pytest.raises(BadInput) as refused:
        layouts(path, **words)
    assert said in str(refused.value)
