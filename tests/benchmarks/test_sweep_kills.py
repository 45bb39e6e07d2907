"""A sweep is killed once while cells are under way, by the benchmark that does so twenty times."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.sweep_kills import attack

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    found = attack(kills=1, within=0.2, seed=3, folder=tmp_path, cells=10, seconds=0.3, at_last=1)
    assert found.wrong == ()
    assert (found.kills, found.cells) == (1, 10)
    assert 1 <= found.reported_before_last < 10
