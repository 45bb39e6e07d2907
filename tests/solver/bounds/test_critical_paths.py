"""Least durations: when devices may be relaxed to delays although there are blocks."""

from __future__ import annotations

import pytest

from solver.bounds.analytic.critical_paths import blocks_outlast_passes
from tests.support.makers import problem


@pytest.mark.parametrize(("block", "outlasts"), [(4, False), (5, True), (8, True)])
def test_a_block_outlasts_both_of_its_passes(block: int, outlasts: bool) -> None:
    """A forward of 2 and a full backward of 5 on every device."""
    assert blocks_outlast_passes(problem(2, 2, times={"forward": 2, "backward": 5, "overlapped": block})) is outlasts
    assert blocks_outlast_passes(problem(2, 2, times={"forward": 5, "backward": 2, "overlapped": block})) is outlasts


def test_without_blocks_there_is_nothing_to_outlast() -> None:
    assert blocks_outlast_passes(problem(2, 2, times={"forward": 2, "backward": 5}))
