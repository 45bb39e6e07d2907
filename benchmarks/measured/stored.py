"""Predictions of all rows as the accuracy page was written from them: a table that tests compare with today's."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

from benchmarks.measured.figures import Compared
from benchmarks.measured.prediction import Prediction
from benchmarks.measured.table import DATA, Row

PREDICTIONS = DATA / "predictions.csv"
_HEAD = ("table", "id", "seconds", "peak_gib", "capacity_gib")
_DIGITS = 8


def rounded(found: Sequence[Compared]) -> list[Compared]:
    """The same rows, with predictions as the table has them."""
    return [one._replace(found=Prediction(*map(_short, _numbers(one.found)))) for one in found]


def predictions_text(tables: Mapping[str, Sequence[Compared]]) -> str:
    """The text of the table: a line for each row of each of `tables`, by the name of the table."""
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_HEAD)
    for name, found in tables.items():
        lines.writerows([name, one.row.id, *_numbers(one.found)] for one in rounded(found))
    return text.getvalue()


def stored_predictions(path: Path = PREDICTIONS) -> dict[str, dict[str, Prediction]]:
    """The stored predictions, by table and row."""
    found: dict[str, dict[str, Prediction]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for name, row, *numbers in [*csv.reader(file)][1:]:
            found.setdefault(name, {})[row] = Prediction(*map(float, numbers))
    return found


def stored(rows: Sequence[Row], predictions: Mapping[str, Prediction]) -> list[Compared]:
    """Rows with their stored predictions, by id."""
    return [Compared(row, predictions[row.id]) for row in rows]


def _numbers(found: Prediction) -> tuple[float, float, float]:
    return found.seconds, found.peak, found.capacity


def _short(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")
