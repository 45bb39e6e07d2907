"""Times and memory of a whole batch: each micro-batch has a share, and every pass its overhead."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from commands.reports.sweep import compared
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from solver.sweeps.sweep import sweep
from tests.support.counted import counted

EXAMPLE = Path(__file__).parents[3] / "examples" / "microbatch-size.yaml"
DOCUMENT: dict[str, Any] = {
    "devices": 2,
    "microbatches": 4,
    "time_unit": "ms",
    "batch": {"size": 8, "overhead": {"forward": "500 us", "backward": 1, "weight": 0.25, "transfer": 0.1}},
    "times": {"forward": [8, 4], "backward": 6, "weight": 4, "transfer": [2, 0]},
    "memory": {"activation": 12, "freed_by_backward": "25%", "capacity": 20, "static": 2},
}


def _in_units(problem: Problem, ticks: int | None) -> Fraction:
    return (ticks or 0) * problem.tick


def test_a_share_and_the_overhead_of_each_pass() -> None:
    problem = problem_from(DOCUMENT)
    first, second = problem.stages
    times = [_in_units(problem, ticks) for ticks in (first.forward, first.backward, first.weight, first.fused)]
    assert times == [Fraction("2.5"), Fraction("2.5"), Fraction("1.25"), Fraction("3.75")]
    assert _in_units(problem, second.forward) == Fraction("1.5")
    assert [_in_units(problem, stage.transfer) for stage in problem.stages] == [Fraction("0.6"), 0]
    assert [first.activation * problem.resolution, first.freed * problem.resolution] == [3, Fraction(3, 4)]
    assert [room * problem.resolution for room in problem.room if room is not None] == [18, 18]


def test_a_backward_that_takes_more_takes_its_share_of_it() -> None:
    problem = problem_from(DOCUMENT | {"memory": {"activation": 12, "freed_by_backward": -4}})
    assert {stage.freed * problem.resolution for stage in problem.stages} == {-1}


def test_activations_are_counted_in_those_of_the_batch() -> None:
    plain = {key: value for key, value in DOCUMENT.items() if key != "memory"}
    problem = problem_from(plain)
    assert {stage.activation * problem.resolution for stage in problem.stages} == {Fraction(1, 4)}


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"microbatches": 3}, "microbatches: found 3; allowed: what divides batch.size, 8"),
        ({"microbatch_scale": [1, 1, 2, 2]}, "batch: found with microbatch_scale; allowed: one of the two"),
        ({"batch": 8}, "batch: found 8; allowed: the keys size, overhead"),
        ({"batch": {"overhead": {"forward": -1}}}, "batch.overhead.forward: found -1; allowed: a number of at least 0"),
        ({"times": {"forward": -4, "backward": 1}}, "times.forward: found -4; allowed: a number of at least 0"),
        ({"times": {"forward": "x", "backward": 1}}, "times.forward: found 'x'; allowed: a number of at least 0"),
        ({"microbatches": 0}, "microbatches: found 0; allowed: a whole number of at least 1"),
    ],
)
def test_mistakes(more: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as refused:
        problem_from(DOCUMENT | more)
    assert [mistake.startswith(f"problem: {line}") for mistake in refused.value.mistakes] == [True]


def test_a_sweep_says_by_how_much_each_number_is_worse() -> None:
    """The published throughput is flat between 8 and 16: step(M) = (M + 7) (o + w / M), least at 11."""
    found = sweep(EXAMPLE, {"microbatches": [8, 11, 16]}, limits=counted(2))
    expected = {count: (count + 7) * (Fraction("58.566") + 1000 / Fraction(count)) for count in (8, 11, 16)}
    values = {row.cell.place["microbatches"]: row.value for row in found.rows}
    assert values == expected
    assert found.above_least == {n: expected[m] / expected[11] - 1 for n, m in enumerate((8, 11, 16))}
    (line,) = compared(found)
    assert line == (
        "least makespan: 2690.551636 at microbatches 11; above it: microbatches 8 2.34 %, microbatches 16 3.49 %"
    )
