"""Derived durations beside published measurements: no change makes them worse unsaid, and the figures are right."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks.accuracy import RECORD, compared, record
from benchmarks.measured.figures import Compared, errors, memory, orders
from benchmarks.measured.prediction import Prediction
from benchmarks.measured.table import read_table

# What rounding, or a correction elsewhere, may move a share by.
_TOLERANCE = 0.004
_LARGER_IS_BETTER = ("within 20 %, BF16", "rank correlation", "rank correlation of schedules")


def test_no_figure_is_worse_than_the_page_says() -> None:
    """`python -m benchmarks.accuracy --write` records a change on purpose."""
    known, found = json.loads(RECORD.read_text(encoding="utf-8")), record(compared())
    assert found.keys() == known.keys()
    worse = {
        name: (known[name], value)
        for name, value in found.items()
        if (known[name] - value if name in _LARGER_IS_BETTER else value - known[name]) > _TOLERANCE
    }
    assert not worse


def test_figures_of_rows_made_up() -> None:
    row = next(one for one in read_table() if one.group and one.seconds)
    rows = [replace(row, seconds=seconds, microbatch_size=size) for size, seconds in ((1, 10.0), (2, 22.0), (4, 50.0))]
    # A sequence takes 10, 11, 12.5 by the measurements and 12, 9, 13 by the predictions.
    found = [Compared(one, Prediction(steps, 1, 2)) for one, steps in zip(rows, (12.0, 18.0, 52.0), strict=True)]
    own = errors(found)
    assert (own.rows, own.median, own.near) == (3, pytest.approx(1.04), 1)
    assert own.mean == pytest.approx((0.2 + 4 / 22 + 0.04) / 3) and own.p90 == pytest.approx(0.2)
    (order,) = orders(found)
    assert (order.rows, order.correlation, order.loss) == (3, 0.5, pytest.approx(0.1)) and not order.of_schedules
    lacked = [Compared(replace(row, seconds=None), Prediction(1, peak, 2)) for peak in (1, 2, 3, 4)]
    ran = Compared(replace(row, allocated=2.0), Prediction(1, 3, 2))
    assert memory([ran, *lacked])[:4] == (1, 1.0, 4, 0.5)
    assert memory([ran, *lacked])[4:] == (1, 1.5, 1.0)
