"""Files of measured steps: what they say, and every mistake in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.steps_file import read_table, steps_from


def test_a_step_with_all_that_it_may_say() -> None:
    entry = {
        "tensor": 2, "pipeline": 2, "data": 4, "chunks": 2, "microbatch_size": 2, "batch": 64, "seconds": 1.5,
        "schedule": "interleaved-1f1b", "recompute": "layernorm+moe_act", "partition": [9, 8, 8, 7], "sequence": 2048,
    }  # fmt: skip
    file = steps_from({"config": "config.json", "hardware": "h100-80gb", "steps": [entry, {"batch": 8, "seconds": 2}]},
                      "steps.yaml")  # fmt: skip
    assert (file.config, file.hardware) == ("config.json", "h100-80gb")
    first, second = file.steps
    assert first.place == "steps.yaml: steps[0]" and first.seconds == 1.5
    assert dict(first.sizes) == {"tensor": 2, "context": 1, "expert": 1, "data": 4}
    assert (first.pipeline, first.chunks, first.microbatch_size, first.microbatches) == (2, 2, 2, 8)
    assert (first.recompute, first.partition, first.sequence) == ("layernorm+moe_act", (9, 8, 8, 7), 2048)
    assert (second.microbatches, second.recompute, second.schedule) == (8, "none", None)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"batch": 8}, "steps[0].seconds: missing; it is required"),
        ({"batch": 8, "seconds": 0}, "steps[0].seconds: found 0; allowed: a number above 0"),
        ({"seconds": 1}, "steps[0]: found microbatches and batch missing; allowed: one"),
        ({"seconds": 1, "batch": 8, "microbatches": 8}, "steps[0]: found microbatches and batch both; allowed: one"),
        ({"seconds": 1, "batch": 8, "data": 3}, "batch: found 8; allowed: a multiple of data * microbatch_size, 3"),
        ({"seconds": 1, "batch": 8, "recompute": "some"}, "recompute: found 'some'; allowed: none, full, or some of"),
        ({"seconds": 1, "batch": 8, "recomputed_layers": 3}, "recompute: missing; it is required where layers are"),
        ({"seconds": 1, "batch": 8, "partition": [4, 4]}, "partition: found 2 stages; allowed: pipeline * chunks, 1"),
        (
            {"seconds": 1, "batch": 8, "placement": "v-shape"},
            "placement: found 'v-shape'; allowed: linear or interleaved",
        ),
        ({"seconds": 1, "batch": 8, "tensors": 2}, "did you mean 'tensor'"),
        ({"seconds": 1, "batch": 8, "tensor": "two"}, "tensor: found 'two'; allowed: a whole number of at least 1"),
    ],
)
def test_mistakes_of_a_step(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        steps_from({"steps": [entry]}, "steps.yaml")
    assert any(said in mistake for mistake in caught.value.mistakes), caught.value.mistakes
    assert len(caught.value.mistakes) == 1


def test_every_step_has_its_mistakes() -> None:
    with pytest.raises(BadInput) as caught:
        steps_from({"steps": [{"seconds": -1, "batch": 8}, {"seconds": 1}, {"seconds": 1, "batch": 2}]}, "a")
    assert len(caught.value.mistakes) == 2
    for document in ({"steps": []}, {}):
        with pytest.raises(BadInput, match="steps"):
            steps_from(document, "a")


def test_a_table_with_the_columns_of_layouts_csv(tmp_path: Path) -> None:
    path = tmp_path / "layouts.csv"
    path.write_text(
        "tensor,context,pipeline,data,expert,microbatch_size,microbatches,chunks,recomputed_layers,partition,step_total,"
        'placement,seconds\n2,1,2,4,1,1,8,2,0,9 8 8 9,800.5,"interleaved, 2 chunks",0.91\n1,1,4,4,1,1,8,1,0,9 8 8 9,900,linear,\n'
    )
    file = read_table(path)
    (one,) = file.steps  # the other was not run
    assert (one.seconds, one.partition, one.microbatches, one.chunks) == (0.91, (9, 8, 8, 9), 8, 2) and file.unread == (
        "step_total",
    )
    for text, said in (
        ("tensor\n2\n", "found no column seconds"),
        ("", "found no steps"),
        ("seconds\n\n", "found no ste"),
        ("seconds,batch,partition\n1,8,9,8,8,9\n", "line 2: found '8' beyond the last column; allowed: 3 cells"),
        ("seconds,batch,\n1,8,,2\n", "line 2: found '2' beyond the last column; allowed: 3 cells"),
        ("seconds,batch,seconds\n1,8,2\n", "found column seconds twice; allowed: once"),
    ):
        path.write_text(text)
        with pytest.raises(BadInput, match=said):
            read_table(path)


@pytest.mark.parametrize("text", ("\ufeffseconds,batch\n1,8\n", "seconds,batch,\n1,8,,\n", "seconds,batch\n1,8,, \n"))
def test_tables_as_spreadsheets_write_them(text: str, tmp_path: Path) -> None:
    """With a byte-order mark, or empty cells beyond the last column."""
    path = tmp_path / "layouts.csv"
    path.write_text(text, encoding="utf-8")
    (one,) = read_table(path).steps
    assert (one.seconds, one.microbatches) == (1, 8)


def test_a_table_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "layouts.csv"
    path.write_text("seconds,batch,partition\n1,4,a b\n")
    with pytest.raises(BadInput, match=r"steps\[0\].partition: found \['a', 'b'\]; allowed: layers of each stage"):
        read_table(path)
    with pytest.raises(BadInput, match="no such file"):
        read_table(tmp_path / "none.csv")
