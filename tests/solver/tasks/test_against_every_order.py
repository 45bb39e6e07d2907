"""What is claimed of tiny problems of each kind against a search that tries every order: solve, bounds, check, validator."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.proofs.attack import KINDS, Counts, count
from pipesched.problem.passes import F
from solver.solve import solve
from tests.support.collective_problems import tiny_collectives
from tests.support.daily import daily
from tests.support.piece_problems import PROVED, compared, features
from tests.support.task_brute_force import TooManyOrdersError, tiny_tasks, with_lookups

# How many problems of each kind, of which an eighth is looked at on a day, and those that found a fault on every day: in
# number 74 of pieces annealing went on from starts alone, where passes of no length stand beside what waits.
NUMBERS = {"modules": 80, "pieces": 80, "saving": 48, "collectives": 60}
ALWAYS = {"pieces": (74,)}


@pytest.mark.parametrize("kind", NUMBERS)
def test_all_that_is_claimed(kind: str) -> None:
    counts: Counts = {}
    for number in {*daily(range(NUMBERS[kind]), 8), *ALWAYS.get(kind, ())}:
        count(number, counts, KINDS[kind])
        assert not counts["all"]["wrong"], number
    assert counts["all"]["problems"] > 1


def test_collectives_are_drawn_together_with_each_other_part() -> None:
    drawn = {name for number in range(100) for name in features(tiny_collectives(Random(number)))}
    assert {f"collectives and {part}" for part in ("pieces", "offload or recomputation", "lookups", "modules")} <= drawn


def test_tasks_that_need_nothing_of_the_stage_before() -> None:
    tried = 0
    for seed in range(16):
        random = Random(seed)
        one = with_lookups(random, tiny_tasks(random))
        try:
            tried += any(stage.entry(F) for stage in one.stages) and compared(one) is not None
        except TooManyOrdersError:
            continue
    assert tried > 2


def test_what_is_no_pass_of_a_micro_batch_takes_its_own_time_in_the_exact_model() -> None:
    """A copy back on the first stream, beside backwards whose mode is open: one that the attack found."""
    one = tiny_collectives(Random(861))
    compared(one)
    assert solve(one, PROVED).notes == ()
