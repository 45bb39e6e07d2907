"""What is wrong is caught: the comparison sees what the runtime itself passes over in silence."""

from __future__ import annotations

import pytest

from tests.support.run_jobs import ran

pytest.importorskip("torch.distributed.pipelining.schedules")


@pytest.mark.parametrize(
    "name", ["swapped receive", "no REDUCE_GRAD", "last stage out of order", "W removed both ways"]
)
def test_wrong_gradients_are_seen(name: str) -> None:
    outcome = ran(2)[name][1]
    assert outcome.refused is None
    assert not outcome.good
    worst = outcome.worst_gradient
    assert outcome.missing or (worst is not None and worst.value > 1e6 * worst.limit)
    assert any("gradient" in line for line in outcome.complaints())


def test_a_missing_w_is_refused_by_the_runtime() -> None:
    outcome = ran(2)["W removed"][1]
    assert outcome.refused
    assert outcome.complaints() == [f"the runtime refused the schedule: {outcome.refused}"]


def test_another_order_than_the_schedule_s_is_seen() -> None:
    """The doctored rows hold other passes than the job's schedule."""
    assert not ran(2)["last stage out of order"][1].ordered
    assert ran(2)["right with comms"][1].ordered


def test_the_same_without_the_fault_is_right() -> None:
    for name in ("right with comms", "right both ways"):
        assert ran(2)[name][1].complaints() == []
