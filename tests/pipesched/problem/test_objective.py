"""The value of an objective, of the first starts and last ends of devices."""

from __future__ import annotations

import pytest

from pipesched.problem.objective import Objective, objectives


@pytest.mark.parametrize(
    ("objective", "value"), [(Objective.MAKESPAN, 9), (Objective.ITERATION, 9), (Objective.SPAN, 7)]
)
def test_value_of_starts_and_ends(objective: Objective, value: int) -> None:
    assert objective.value_of([(0, 7), (3, 9)]) == value


def test_a_problem_without_parameters_has_an_objective_of_passes() -> None:
    assert [one.of_passes for one in objectives() if one.of_passes is not one] == [Objective.MAKESPAN]
    assert [one for one in objectives() if one.repeats] == [Objective.PERIOD]
