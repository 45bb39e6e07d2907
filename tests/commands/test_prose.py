"""Notes that must say what they mean: what the gap does to a figure of the table of changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pipesched.results.analysis.explanation_text import footnotes


def test_the_gap_of_the_unchanged_problem_is_explained() -> None:
    it: Any = SimpleNamespace(unchanged=SimpleNamespace(value=10_000, lower_bound=8_816), effects=())
    (note,) = footnotes(it)
    assert "11.84 %" in note
    assert "'at most 12 %'" in note
