"""Memory over time: what is held at the last forward, where B gives back a part of the activation, all or none of it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pipesched.problem import placement
from pipesched.problem.problem import Objective, Problem
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.analytic.idle_time.memory_energy import area, held_at_last_forward, unused_at_first
from tests.support.columns import Costs, Memory, build


def two_devices(m: int, costs: Costs, memory: Memory) -> Problem:
    return build(placement.linear(2), m, costs, memory, Objective.SPAN)


# Where W is long and B gives back most of an activation; the optimum was found by trying every order.
LONG_WEIGHTS = (
    (
        two_devices(3, Costs((5, 2), (5, 1), (1, 48), (3, 53), (100, 0)), Memory((8, 8), (4, 6), (29, 12))),
        221,
    ),
    (two_devices(4, Costs((1, 1), (1, 1), (2, 59), (3, 60), (300, 20)), Memory((5, 5), (4, 4), (1000, 8))), 615),
)


@pytest.mark.parametrize(("problem", "optimum"), LONG_WEIGHTS)
def test_what_waits_for_a_long_weight_pass_counts_by_what_it_still_holds(problem: Problem, optimum: int) -> None:
    assert certificates(problem, Objective.SPAN)[0].value == optimum


def one_device(freed: int, forward: int = 1, whole: int = 100, capacity: int = 12) -> Problem:
    """F, B of 1 and W of 10, with 4 of memory from F to B, and 4 less `freed` from B to W."""
    return build(
        placement.linear(1), 9, Costs((forward,), (1,), (10,), (whole,), (0,)), Memory((4,), (freed,), (capacity,))
    )


@pytest.mark.parametrize(
    ("freed", "expected"),
    # By unit of memory: 10 ticks where only W is left, and 4 + 4 + 10 (4 - freed) over 4, falling by 1/4, before.
    [
        # From 12, by 1/4 a unit for 8 units, down to 10.
        (0, 8 * Fraction(12 + 10, 2) + 4 * 10),
        # 7 are less than 10 already: all 12 units wait for W.
        (2, 12 * 10),
        (3, 12 * 10),
        # Nothing waits for W, so 2, by 1/4 a unit for 8 units, down to 0.
        (4, 8 * Fraction(2, 2)),
    ],
)
def test_what_is_left_by_unit_of_memory(freed: int, expected: Fraction) -> None:
    problem = one_device(freed)
    assert held_at_last_forward(problem, Paths(problem), [0], 12) == expected


def test_forwards_of_no_duration_leave_all_of_what_is_longest() -> None:
    short = one_device(3, forward=0)
    assert held_at_last_forward(short, Paths(short), [0], 12) == 12 * 10
    long = one_device(0, forward=0)
    assert held_at_last_forward(long, Paths(long), [0], 12) == 12 * 11


def test_a_short_full_backward_leaves_less_than_a_weight_pass_takes() -> None:
    """A full backward of 2 holds 8 in all: when B has ended, 4 of that are left, for 2 that are held, so 2 by unit."""
    problem = one_device(2, whole=2)
    assert area(problem, Paths(problem), 0) == 4 + 8
    # From 3, by 1/4 a unit for 4 units, down to 2.
    assert held_at_last_forward(problem, Paths(problem), [0], 12) == 4 * Fraction(3 + 2, 2) + 8 * 2


def test_nothing_is_held_of_stages_that_take_no_memory() -> None:
    problem = build(placement.linear(1), 3, Costs((1,), (1,), (1,), (2,), (0,)), Memory((0,), (0,), (5,)))
    assert held_at_last_forward(problem, Paths(problem), [0], 5) == 0


@pytest.mark.parametrize(
    ("freed", "expected"),
    # 4 for F; then 4 for B and what it takes more, and for W what is left: or 4 for 100 ticks of the full backward.
    [(4, 4 + 4 + 0), (1, 4 + 4 + 30), (0, 4 + 4 + 40), (-2, 4 + 6 + 60), (-40, 4 + 400)],
)
def test_the_least_that_a_micro_batch_takes(freed: int, expected: int) -> None:
    """With a negative `freed` B takes memory too, for itself and until W ends."""
    problem = one_device(freed)
    assert area(problem, Paths(problem), 0) == expected


def test_memory_unused_at_first_counts_if_it_is_ever_full() -> None:
    """Activations of 4 and forwards of 1: 4 at once, then 4 more a tick, so of the first 12 x 2 a triangle of 8."""
    problem = one_device(0)
    paths = Paths(problem)
    assert unused_at_first(problem, paths, [0], 12, 1000) == 8
    assert unused_at_first(problem, paths, [0], 12, 16) == 8
    assert unused_at_first(problem, paths, [0], 12, 15) == 0
    assert unused_at_first(problem, paths, [0], 4, 1000) == 0
    assert unused_at_first(problem, paths, [0], 3, 1000) == 0


def test_a_full_backward_shorter_than_b_leaves_nothing_for_a_weight_pass() -> None:
    """From 2, by 1/4 a unit for 8 units, down to 0."""
    problem = one_device(2, whole=0)
    assert area(problem, Paths(problem), 0) == 4
    assert held_at_last_forward(problem, Paths(problem), [0], 12) == 4 * Fraction(1, 2)


def two_stages(activation: tuple[int, int]) -> Problem:
    """Two stages of one device, with forwards of 1 and 6."""
    costs = Costs((1, 6), (1, 1), (10, 10), (100, 100), (0, 0))
    return build(placement.explicit(1, [0, 0]), 9, costs, Memory(activation, (0, 0), (12,)))


def test_of_several_stages_the_fastest_fills_memory_and_the_largest_comes_first() -> None:
    """1 tick for 4 and 6 for 2: a quarter of a tick a unit, from 4 to 12."""
    problem = two_stages((4, 2))
    assert unused_at_first(problem, Paths(problem), [0, 1], 12, 1000) == 8 * 8 * Fraction(1, 8)


def test_of_several_stages_what_is_left_falls_by_the_fastest() -> None:
    """Stage 0 has 1 + 7 + 1 + 10 by unit, from its forward to the end of W, and one forward takes a quarter a unit."""
    problem = two_stages((4, 2))
    paths = Paths(problem)
    assert area(problem, paths, 0) == 4 * (1 + 7 + 1 + 10)
    assert held_at_last_forward(problem, paths, [0, 1], 12) == 12 * 19 - Fraction(12 * 12, 8)


def test_without_activations_nothing_is_unused() -> None:
    problem = two_stages((0, 0))
    assert unused_at_first(problem, Paths(problem), [0, 1], 12, 1000) == 0


def test_a_backward_that_cannot_be_split_holds_all_until_it_ends() -> None:
    """3 ticks of 4: the forward and the backward; from 3, by 1/4 a unit for 12 units, down to 0."""
    problem = build(placement.linear(1), 9, Costs((1,), (2,), None, (2,), (0,)), Memory((4,), (1,), (12,)))
    assert area(problem, Paths(problem), 0) == 12
    assert held_at_last_forward(problem, Paths(problem), [0], 12) == 12 * Fraction(3, 2)


def test_the_way_to_the_last_stage_and_back_holds_memory_too() -> None:
    """Stage 0 waits for 3 + 5 + 1 + 3 between its forward and its backward; so 1 + 12 + 1 with all, 10 with 3 of 4."""
    costs = Costs((1, 5), (1, 1), (10, 10), (100, 100), (3, 0))
    problem = build(placement.linear(2), 9, costs, Memory((4, 4), (1, 1), (12, 12)))
    paths = Paths(problem)
    assert area(problem, paths, 0) == 4 * 14 + 3 * 10
    # From 86 / 4, by 1/4 a unit for 12 units; what waits for W has 10.
    assert held_at_last_forward(problem, paths, [0], 12) == 12 * Fraction(86, 4) - Fraction(12 * 12, 8)
    longer = build(
        placement.linear(2), 9, Costs((1, 5), (1, 1), (60, 10), (100, 100), (3, 0)), Memory((4, 4), (1, 1), (12, 12))
    )
    # Now W has 60, and all that 4 * 14 + 3 * 60 is by unit of 4, 59, is less.
    assert held_at_last_forward(longer, Paths(longer), [0], 12) == 12 * 60


def test_of_several_stages_the_longest_weight_pass_counts() -> None:
    costs = Costs((1, 1), (1, 1), (10, 70), (200, 200), (0, 0))
    problem = build(placement.explicit(1, [0, 0]), 9, costs, Memory((4, 4), (3, 3), (12,)))
    assert held_at_last_forward(problem, Paths(problem), [0, 1], 12) == 12 * 70


def test_a_block_may_be_shorter_than_a_full_backward() -> None:
    """In a block of 3 the full backward takes 3 where it takes 9 alone, and the forward 3 where it takes 5."""
    costs = Costs((5,), (4,), (5,), (9,), (0,), overlapped=(3,))
    problem = build(placement.linear(1), 9, costs, Memory((4,), (0,), (12,)))
    assert area(problem, Paths(problem), 0) == 4 * 3 + 4 * 3
