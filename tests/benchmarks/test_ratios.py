"""Errors of the ratio of two layouts' steps, and the losses of rules that recommend a layout."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.measured.figures import Compared
from benchmarks.measured.prediction import Prediction
from benchmarks.measured.ratios import by_difference, choices, pairs, repeated
from benchmarks.measured.table import read_table


def rows(of: str, *steps: tuple[int, int, float, float]) -> list[Compared]:
    """Rows by tensor and pipeline size, measured and predicted seconds."""
    row = next(one for one in read_table() if one.group and one.seconds)
    sizes = ("context", 1), ("expert", 1), ("data", 8)
    found = []
    for tensor, pipeline, seconds, predicted in steps:
        own = replace(row, model=of, sizes=(("tensor", tensor), *sizes), pipeline=pipeline, seconds=seconds)
        own = replace(own, recompute="none", microbatch_size=1, chunks=1)
        found.append(Compared(own, Prediction(predicted, 1, 2)))
    return found


def test_an_error_that_layouts_share_is_none_of_their_ratio() -> None:
    found = rows("a", (1, 1, 10, 15), (2, 1, 20, 30), (2, 2, 10, 12), (2, 2, 11, 30))
    known = {pair.differ: pair.error for pair in pairs(found[:3])}
    assert known == {
        ("TP",): pytest.approx(0),
        ("TP", "PP"): pytest.approx(0.25),
        ("PP",): pytest.approx(0.25),
    }
    assert {name: len(each) for name, each in by_difference(pairs(found)).items()} == {"TP": 1, "TP, PP": 2, "PP": 2}


def test_losses_of_the_least_step_and_of_plainer_layouts() -> None:
    plainer_is_slower = rows("a", (2, 2, 10, 10), (2, 1, 15, 10.1), (1, 1, 30, 30))
    plainer_is_faster = rows("b", (2, 2, 12, 10), (2, 1, 10, 10.1), (1, 1, 30, 30))
    both = plainer_is_slower + plainer_is_faster
    least, within = choices(both, 0), choices(both, 0.02)
    assert least.groups == 2 and (least.mean, least.largest) == (pytest.approx(0.1), pytest.approx(0.2))
    assert (within.mean, within.largest) == (pytest.approx(0.25), pytest.approx(0.5))
    # Within the error of the other group's ratios, that is 50 % and more.
    assert choices(both, None) == within


def test_the_error_that_repeated_runs_leave_to_any_prediction() -> None:
    found = rows("a", (1, 1, 10, 1), (1, 1, 20, 1), (1, 1, 20, 1), (2, 1, 5, 1))
    own = repeated(found, lambda _: "all")["all"]
    assert (own.layouts, own.rows, own.spread) == (1, 3, pytest.approx(1.0))
    # 10 is half of what two runs take; 20 is twice what one takes.
    assert own.least_error == pytest.approx((0 + 0.5 + 0.5) / 3)
