"""The table of what a problem file may not combine, and the page that lists it."""

from __future__ import annotations

from fractions import Fraction

from docs.make_together import PAGE, page
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.together import REFUSED


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_each_pair_is_there_once() -> None:
    pairs = [frozenset((row.one.name, row.other.name)) for row in REFUSED]
    assert len(set(pairs)) == len(pairs)
    assert all("\n" not in row.line for row in REFUSED)


def test_times_that_grow_by_a_third_are_read() -> None:
    """A piece's own time was written as text, which was then refused as no number."""
    one = problem_from(
        {"devices": 1, "microbatches": 1, "sequence_chunks": 2,
         "times": {"forward": {"first": "4/3", "each_earlier": "1/3"}, "backward": {"first": "1/3", "each_earlier": 1}}}
    )  # fmt: skip
    assert [stage.forward * one.tick for stage in one.stages] == [Fraction(4, 3), Fraction(5, 3)]
