"""Tasks that occupy several streams at once: bounds, relaxation, check, constructions and solves against every order."""

from __future__ import annotations

from collections import Counter
from random import Random

from benchmarks.proofs.tasks_at_once import compare
from tests.support.piece_problems import compared
from tests.support.task_brute_force import TooManyOrdersError
from tests.support.tasks_at_once import tiny_at_once


def test_no_claim_is_above_every_order_and_no_construction_below() -> None:
    seen = Counter[str]()
    for number in range(60):
        seen.update(compare(number)[1])
    assert seen["problems"] > 30
    assert seen["a bound attained"] > 20
    assert seen["more where streams are occupied at once"] > 5
    assert seen["schedules"] > 60


def test_a_solve_proves_the_optimum_of_every_order() -> None:
    seen = Counter[str]()
    for number in range(12):
        try:
            seen.update(("problems", *compared(tiny_at_once(Random(number)))))
        except TooManyOrdersError:
            continue
    assert seen["problems"] > 6
