"""The table of a sweep as CSV and Parquet: a row for each cell, numbers as numbers, exact ones as text."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from fractions import Fraction

import pytest

from pipesched.errors import BadInput
from pipesched.sweeps import exports
from pipesched.sweeps.table import Table
from tests.support.sweeps import outcome, published, sweep, table


def some() -> Table:
    third = replace(outcome(4, 3), value=Fraction(10, 3), published=(published("1f1b", 4, 2),))
    return table(sweep("memory=1.5,2", "name=a,[x]", "objective=span"), [third, None, outcome(None), None])


def test_csv_has_a_row_for_each_cell() -> None:
    rows = list(csv.DictReader(io.StringIO(exports.to_csv(some()))))
    assert [(row["cell"], row["memory"], row["status"]) for row in rows] == [
        ("0", "1.5", "feasible"), ("1", "1.5", "refused"), ("2", "2.0", "infeasible"), ("3", "2.0", "refused"),
    ]  # fmt: skip
    assert (rows[0]["value_exact"], rows[0]["lower_bound"], rows[0]["best_heuristic"]) == ("10/3", "3.0", "1f1b")
    assert float(rows[0]["ratio"]) == pytest.approx(1.2)
    # A field that is also called as a column of the results keeps a column of its own.
    assert (rows[0]["axis objective"], rows[0]["objective"], rows[2]["reason"]) == (
        "span",
        "span",
        "memory: too little",
    )


def test_numbers_stay_numbers_where_cells_are_refused() -> None:
    found = table(sweep("memory=1p,2p", "placement=linear,[0, 5]"), [outcome(4), None, outcome(3), None])
    assert exports.columns(found)["memory"] == [2.0, 2.0, 4.0, 4.0]


def test_parquet_has_the_same() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    read = parquet.read_table(io.BytesIO(exports.to_parquet(some())))
    assert read.to_pydict() == exports.columns(some())
    assert str(read.schema.field("memory").type) == "double" and str(read.schema.field("reason").type) == "string"
    assert str(read.schema.field("period").type) == "double"  # though none has one


def test_without_arrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "find_spec", lambda _: None)
    with pytest.raises(BadInput, match=r"pip install 'pipesched\[parquet\]'"):
        exports.to_parquet(some())


def test_the_document_is_plain_data() -> None:
    document = some().document()
    assert (document["kind"], document["memory_unit"], document["time_unit"]) == ("problems", "GiB", "ms")
    assert document["cells"][0]["at"] == {"memory": 1.5, "name": "a", "objective": "span"}
    assert document["cells"][0]["published"][0]["name"] == "1f1b"
    assert document["cells"][3]["reason"].startswith("name: found")
