"""The table of what a problem file may not combine, and the page that lists it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from docs.make_together import PAGE, page
from pipesched.errors import BadInput
from pipesched.files.features.catalogue import excluded_pairs
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_each_pair_is_there_once() -> None:
    pairs = [frozenset((row.one.name, row.other.name)) for row in excluded_pairs()]
    assert len(set(pairs)) == len(pairs)
    assert all("\n" not in row.line for row in excluded_pairs())


def test_times_that_grow_by_a_third_are_read() -> None:
    """A piece's own time was written as text, which was then refused as no number."""
    one = problem_from(
        {"devices": 1, "microbatches": 1, "sequence_chunks": 2,
         "times": {"forward": {"first": "4/3", "each_earlier": "1/3"}, "backward": {"first": "1/3", "each_earlier": 1}}}
    )  # fmt: skip
    assert [stage.forward * one.tick for stage in one.stages] == [Fraction(4, 3), Fraction(5, 3)]


def test_what_an_objective_excludes_is_excluded_after_free_memory_too() -> None:
    both = {
        "streams": ["compute", "comm"],
        "times": {"forward": 1, "backward": 1, "transfer": {"time": 1, "on": "comm", "both": True}},
    }
    asked = {"devices": 2, "microbatches": 2, "memory": {"capacity": 9}, "objective": "free_memory", "then": "period"}
    with pytest.raises(BadInput) as error:
        problem_from(asked | both)
    assert error.value.mistakes == ("problem: then: found period with times.transfer.both; allowed: makespan or span",)
    assert problem_from(asked | both | {"then": "span"}).objective.name == "span"
    plan = {"devices": 2, "microbatches": 2, "layers": [{"name": "a", "forward": 1, "backward": 1, "count": 2}], "memory": {"capacity": 9},
            "objective": "free_memory", "then": "period", "transfer": {"time": 1, "on": "compute", "both": True}}  # fmt: skip
    with pytest.raises(BadInput) as error:
        plan_problem_from(plan)
    assert error.value.mistakes == ("plan: then: found period with transfer.both; allowed: makespan",)
