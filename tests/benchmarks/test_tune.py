"""The tuner of parameters: which it takes, and one trial with the figure on the hidden seed."""

from __future__ import annotations

import pytest

from benchmarks.tune import main, parameters
from pipesched.errors import BadInput


def test_an_unknown_parameter_is_refused_with_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["BeamSchedules.widht"]) == 2
    assert "BeamSchedules.width" in capsys.readouterr().err


def test_parameters_of_several_values_are_refused() -> None:
    with pytest.raises(BadInput):
        parameters(["PortfolioParams.temperatures"])


def test_trials_begin_with_the_default_and_end_on_the_hidden_seed(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("optuna")
    assert main(["PoolParams.size", "--trials", "2", "--problems", "1", "--work", ".01"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "{'PoolParams.size': 6}" in lines[1]
    assert [line.partition(":")[0] for line in lines[-2:]] == ["default", "best found"]
