"""The bounds that count passes outside of overlapped blocks and split backwards: in numbers, and below every schedule."""

from __future__ import annotations

import pytest

from pipesched.problem import placement
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from solver.bounds.analytic.catalogue import BOUNDS, certificates
from solver.bounds.analytic.modes import counts as mode_counts
from tests.support.columns import Costs, Memory, build

OURS = ("unpaired passes", "memory and modes")


def equal(
    where: Placement,
    microbatches: int,
    capacity: int | None,
    times: tuple[int, int, int, int] = (10, 10, 10, 20),
    overlapped: int | None = None,
    objective: Objective = Objective.MAKESPAN,
) -> Problem:
    """Equal stages: F, B, W, BW, and a block; memory in activations, all of one freed by W."""
    stages = where.stages
    f, b, w, whole = ((t,) * stages for t in times)
    blocks = None if overlapped is None else (overlapped,) * stages
    costs = Costs(f, b, w, whole, (0,) * stages, blocks)
    return build(
        where, microbatches, costs, Memory((1,) * stages, (0,) * stages, (capacity,) * where.devices), objective
    )


def strongest(problem: Problem, name: str) -> tuple[int, int, str]:
    """Value, device and text."""
    best = max(BOUNDS[name].certify(problem, problem.objective), key=lambda one: one.value_ticks)
    assert best.device is not None
    return int(best.value_ticks), best.device, best.text


def test_forwards_before_the_first_backward_have_no_partner() -> None:
    """Device 3 starts at 30, sees a backward at 110 or later, and runs 8 forwards until then: 30 + 20 x 24 + 8 x 6."""
    value, device, text = strongest(equal(placement.bidirectional(8), 20, 9, overlapped=24), "unpaired passes")
    assert (value, device) == (30 + 480 + 8 * 6, 3)
    for part in ("8 of its 20 forwards", "528", "110", "562 with one less outside", "564 with one more outside"):
        assert part in text


def test_a_small_problem_proves_no_less_if_its_splits_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large problem's are not, and count as free of cost: here they are."""
    problem = equal(placement.bidirectional(4), 16, 3, overlapped=24)
    apart = [strongest(problem, name)[0] for name in OURS]
    monkeypatch.setattr(mode_counts, "_MOST_CELLS", 0)
    together = [strongest(problem, name) for name in OURS]
    assert (apart, [value for value, *_ in together]) == ([428, 442], [428, 440])
    assert "split" not in together[0][2]
    monkeypatch.setattr(mode_counts, "_MOST_CELLS", 17 * 17)
    assert not mode_counts.ModeCounts(problem.pipeline, [0, 4]).too_many
    monkeypatch.setattr(mode_counts, "_MOST_CELLS", 0)
    shorter = equal(placement.linear(8), 24, 8, (10, 10, 10, 16))
    assert strongest(shorter, "unpaired passes")[0] == 70 + 24 * 26
    monkeypatch.setattr(mode_counts, "_MOST_FORWARDS", 15)
    assert {one.kind for one in certificates(problem, Objective.MAKESPAN)}.isdisjoint(OURS)


def test_times_beyond_64_bits_are_added_up_exactly() -> None:
    problem, huge = (
        equal(placement.bidirectional(4), 16, 3, tuple(t * scale for t in (10, 10, 10, 20)), overlapped=24 * scale)
        for scale in (1, 2**70)
    )
    for name in OURS:
        value = strongest(problem, name)[0] - (name == "memory and modes")
        assert value * 2**70 <= strongest(huge, name)[0] <= (value + 1) * 2**70


def test_memory_that_holds_nothing_ends_the_search_for_a_value() -> None:
    nothing = equal(placement.linear(2), 3, 0, overlapped=24)
    assert BOUNDS["memory and modes"].certify(nothing, Objective.MAKESPAN) == []
