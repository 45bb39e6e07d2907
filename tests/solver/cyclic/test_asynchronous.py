"""Asynchronous pipelines with a version of the weights for each micro-batch in flight, as in PipeDream.

Without a flush the period of 1F1B is the longest forward and backward of a stage, and a stage has as many versions as
micro-batches in flight: one more than stages follow it, where all are equal (Narayanan et al., SOSP 2019, section 3.3).
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from commands.main import main
from pipesched.files.problem_file import problem_from, read_problem
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from solver.cyclic.solve_period import solve_period
from tests.support.counted import counted

_EXAMPLE = Path(__file__).parents[3] / "examples" / "asynchronous.yaml"
_ACTIVATION, _WEIGHTS = 1, 2


def _solved(forward, backward, versions):
    """The best pattern with room for so many versions of the weights on each device."""
    each = _ACTIVATION + _WEIGHTS
    memory = {"capacity": [number * each for number in versions], "activation": each}
    times = {"forward": forward, "backward": backward}
    document = {"devices": len(versions), "microbatches": 24, "times": times, "memory": memory, "objective": "period"}
    solution = solve_period(problem_from(document), counted(4))
    assert solution.status is Status.OPTIMAL
    assert solution.timeline is not None
    held = [peak / each for peak in measure(solution.timeline).peak_memory]
    return Fraction(solution.value_ticks) * solution.problem.tick, held


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_equal_stages_have_as_many_versions_as_stages_follow_and_one_more(stages):
    versions = [*range(stages, 0, -1)]
    period, held = _solved(1, 2, versions)
    assert period == 3
    assert held == versions
    # With a version less on the first stage its round trip is the longest.
    fewer = [stages - 1, *versions[1:]]
    assert _solved(1, 2, fewer)[0] == Fraction(3 * stages, stages - 1)


def test_a_slow_first_stage_needs_fewer_versions():
    """The period is that stage's forward and backward, of which a round trip has two and a half."""
    assert _solved([2, 1, 1, 1], [4, 2, 2, 2], [4, 3, 2, 1])[0] == 6
    assert _solved([2, 1, 1, 1], [4, 2, 2, 2], [3, 2, 1, 1])[0] == 6
    assert _solved([2, 1, 1, 1], [4, 2, 2, 2], [2, 2, 1, 1])[0] == Fraction(15, 2)


@pytest.mark.usefixtures("pictures_are_empty")
def test_example(tmp_path, capsys):
    problem = read_problem(_EXAMPLE)
    assert solve_period(problem, counted(4)).value_ticks == 6
    assert main(["solve", str(_EXAMPLE), "-o", str(tmp_path), "--time-limit", "20"]) == 0
    assert main(["check", str(tmp_path / "schedule.json")]) == 0
    said = capsys.readouterr().out
    assert "the schedule is valid, with a period of 6" in said
    assert "so it is optimal" in said
