"""Amounts and counts as people read them."""

from __future__ import annotations

import pytest

from pipesched.problem.formatting import counted, memory_text, size
from tests.support.makers import problem


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(0, "step", "0 steps"), (1, "step", "1 step"), (2, "step", "2 steps"), (2, "micro-batch", "2 micro-batches")],
)
def test_one_of_something_is_singular(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


def test_the_size_of_a_problem() -> None:
    assert size(problem(1, 1)) == "1 device, 1 micro-batch"
    assert size(problem(2, 3)) == "2 devices, 3 micro-batches"


def test_memory_has_its_unit() -> None:
    assert [memory_text(problem(1, 1), level) for level in (1, 2)] == ["1 activation", "2 activations"]
    assert memory_text(problem(1, 1, memory={"activation": 1, "unit": "GiB"}), 1) == "1 GiB"
