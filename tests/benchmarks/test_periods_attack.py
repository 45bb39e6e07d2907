"""The attack on periods: patterns are found where there are any, bounds that claim too much are seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.proofs import periods
from pipesched.checking.finding import Finding, Verdict

TIMES = {"forward": [1, 1], "backward": [1, 1], "weight": [1, 1], "transfer": 0}
PLAIN: dict[str, Any] = {"devices": 2, "microbatches": 4, "placement": [0, 1], "times": TIMES}


def room(capacity: int) -> dict[str, Any]:
    return {"memory": {"activation": [1, 1], "capacity": [capacity, capacity]}}


@pytest.mark.parametrize(
    ("more", "microbatches", "least"),
    [
        ({}, 1, 3),
        (room(1), 1, 5),
        (room(2), 1, 3),
        ({"times": TIMES | {"transfer": 3}} | room(1), 1, 11),
        ({"times": TIMES | {"overlapped": [2, 2], "fused": [2, 2]}}, 1, 2),
        # Of two micro-batches one may run split, one whole.
        ({"times": TIMES | {"fused": [1, 2]}}, 2, 6),
    ],
)
def test_the_least_pattern_is_known(more: dict[str, Any], microbatches: int, least: int) -> None:
    document = PLAIN | more
    assert periods.repeats_within(document, microbatches, least) is True
    assert periods.repeats_within(document, microbatches, least - 1) is False
    assert periods.repeats_within(document, microbatches, least + 1) is True


@pytest.mark.parametrize("number", [0, 1, 3, 4, 8, 9])
def test_bounds_hold_and_one_more_is_seen(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds, seen = periods.compare(number)
    assert "problems" in seen and "all" in kinds
    if number == 0:
        assert "refused" in seen
        return
    honest = periods.period_certificates
    monkeypatch.setattr(periods, "check_bound", lambda *_: Finding(Verdict.VERIFIED, ""))
    monkeypatch.setattr(
        periods, "period_certificates", lambda *a: [replace(one, value=one.value + 1) for one in honest(*a)]
    )
    assert "equal" in seen
    with pytest.raises(AssertionError, match="a micro-batch, where"):
        periods.compare(number)


def test_a_bound_that_check_refuses_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periods, "check_bound", lambda *_: Finding(Verdict.REFUSED, "no"))
    with pytest.raises(AssertionError, match=r"check of .*: no"):
        periods.compare(1)
