"""Tasks that occupy several streams at once: solves against every order."""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.support.piece_problems import compared
from tests.support.task_brute_force import TooManyOrdersError
from tests.support.tasks_at_once import tiny_at_once


def test_a_solve_proves_the_optimum_of_every_order() -> None:
    seen = Counter[str]()
    for number in range(12):
        try:
            seen.update(("problems", *compared(tiny_at_once(Random(number)))))
        except TooManyOrdersError:
            continue
    assert seen["problems"] > 6
