"""Amounts as they are written, and values that a span can have."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from random import Random

import pytest

from pipesched.problem.attainable_spans import Value, least_above, least_from, most_below, most_up_to
from pipesched.problem.formatting import counted, memory_text, peak_of, size
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


def values(random: Random, parts: int) -> list[Value]:
    """Whole numbers, attainable fractions, others beside them, and any."""
    near = Fraction(random.randint(-50, 50), random.randint(1, parts))
    other = near + Fraction(random.choice((-1, 1)), random.randint(1, 10**6))
    return [random.randint(-50, 50), near, other, Fraction(random.randint(-(10**9), 10**9), random.randint(1, 10**6))]


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 8, 16, 37])
def test_the_neighbours_are_the_best_of_all_denominators(parts: int) -> None:
    random = Random(parts)
    every = range(1, parts + 1)
    for value in (value for _ in range(300) for value in values(random, parts)):
        assert least_from(value, parts) == min(Fraction(ceil(value * q), q) for q in every)
        assert least_above(value, parts) == min(Fraction(floor(value * q) + 1, q) for q in every)
        assert most_up_to(value, parts) == max(Fraction(floor(value * q), q) for q in every)
        assert most_below(value, parts) == max(Fraction(ceil(value * q) - 1, q) for q in every)


@pytest.mark.parametrize(
    ("peak", "capacity", "decimals", "text"),
    [
        ("1609728", "1609728", 6, "1609728 of 1609728"),
        ("72.05", "72.06", 1, "72 of 72"),
        ("72.0601", "72.06", 1, "72.1 of 72.06"),
        ("1/3", "1/3", 6, "0.333333 of 0.333333"),
        ("1.0000000001", "1", 6, "1.000001 of 1"),
    ],
)
def test_a_peak_looks_above_its_capacity_only_where_it_is(peak: str, capacity: str, decimals: int, text: str) -> None:
    assert peak_of(Fraction(peak), Fraction(capacity), decimals) == text


def test_text_of_peaks_compares_as_they_do() -> None:
    rng = Random(0)
    for _ in range(2000):
        capacity = Fraction(rng.randint(1, 10**9), 10 ** rng.randint(0, 9))
        peak = capacity + Fraction(rng.randint(-9, 9), 10 ** rng.randint(0, 12))
        shown, room = peak_of(max(peak, Fraction(0)), capacity, rng.randint(0, 6)).split(" of ")
        assert (float(shown) > float(room)) == (peak > capacity)
