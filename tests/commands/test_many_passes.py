"""Of many passes what follows a search keeps to the time too, and Ctrl-C ends it with what is there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from commands.main import main
from commands.shared import output
from solver.analysis.published_comparison import all_tried, search_limits
from solver.engine.search import SEARCH
from solver.limits import Limits
from solver.solve import solve
from tests.support.makers import problem

_FILE = "devices: 2\nmicrobatches: 4\ntimes: {forward: 2, backward: 2, weight: 2}\n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    found = tmp_path / "problem.yaml"
    found.write_text(_FILE, encoding="utf-8")
    return str(found)


def test_causes_of_idle_time_that_take_too_long_are_left_out(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = solve(problem(2, 4))
    assert whole.timeline is not None
    assert output.idle_shares(whole.timeline, 0.0)
    monkeypatch.setattr(output, "_FEW_PASSES", 0)
    monkeypatch.setattr(output, "within", lambda *_: None)
    assert output.idle_shares(whole.timeline, 0.0) is None
    assert main(["solve", path]) == 0
    assert "why devices idle: no time to say of so many passes" in capsys.readouterr().out
    assert main(["solve", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["idle_causes"] is None


def test_a_stop_ends_the_comparison_with_what_was_tried() -> None:
    found = solve(problem(2, 4))
    fewer = replace(found, candidates=found.candidates[:3])
    stop = Event()
    stop.set()
    names = [one.name for one in found.candidates]
    after = all_tried(fewer, names, Limits(), stop)
    assert after.candidates[:3] == fewer.candidates
    assert not any(one.tried for one in after.candidates[3:])
    assert all_tried(fewer, names, Limits()).value == found.value


def test_a_search_of_very_many_passes_leaves_time_for_the_comparison() -> None:
    many = SEARCH.very_long // 3
    assert search_limits(problem(2, 4), Limits(60)) == Limits(60)
    assert search_limits(problem(2, many), Limits(60)) == Limits(54)
    assert search_limits(problem(2, many), Limits(60, deterministic=3)) == Limits(60, deterministic=3)
