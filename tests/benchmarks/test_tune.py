"""The tuner of parameters: which it takes, and one trial with the figure on the hidden seed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from benchmarks import tune
from benchmarks.tune import main, mean_gap, parameters
from pipesched.errors import BadInput


def test_an_unknown_parameter_is_refused_with_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["BeamSchedules.widht"]) == 2
    assert "BeamSchedules.width" in capsys.readouterr().err


def test_parameters_of_several_values_are_refused() -> None:
    with pytest.raises(BadInput):
        parameters(["PortfolioParams.temperatures"])


def test_trials_begin_with_the_default_and_end_on_the_hidden_seed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    asked = list[tuple[int, int]]()

    def gap(values: Mapping[str, int], _: str, seed: int, problems: int, work: float) -> float:
        asked.append((values["PoolParams.size"], seed))
        return abs(values["PoolParams.size"] - 9) / 100

    monkeypatch.setattr(tune, "mean_gap", gap)
    assert main(["PoolParams.size", "--trials", "12", "--seed", "3", "--hidden", "4"]) == 0
    best = min((size for size, _ in asked[:-2]), key=lambda size: abs(size - 9))
    assert asked[0] == (6, 3) and {seed for _, seed in asked[:-2]} == {3} and len(asked) == 14 and best != 6
    assert asked[-2:] == [(6, 4), (best, 4)]
    lines = capsys.readouterr().out.splitlines()
    assert "{'PoolParams.size': 6}" in lines[1]
    assert [line.partition(":")[0] for line in lines[-2:]] == ["default", "best found"]


def test_problems_are_solved_in_a_process_of_their_own() -> None:
    """That values take effect there is the matter of tests/solver/test_parameters.py."""
    assert 0 <= mean_gap({}, "drawn", 70, 1, 0.01) < 1
