"""The table of stored optima: what defines a problem is its key, and a wrong value of it is found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from pipesched.problem.problem import Objective
from pipesched.problem.units import Units
from tests.support import optima
from tests.support.optima import OPTIMA, fraction_as_json, fraction_of_json, key_of, stored
from tests.support.task_brute_force import TooManyOrdersError, tiny_tasks
from tests.support.task_brute_force import optimum as optimum_of_tasks
from tests.support.tiny_problem import tiny_problem


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """An empty table, of which nothing is computed again."""
    found: dict[str, object] = {}
    monkeypatch.setattr(OPTIMA, "stored", found)
    monkeypatch.setattr(OPTIMA, "record", found)
    monkeypatch.setattr(optima, "_drawn", lambda _: False)
    yield found


def test_a_problem_is_known_by_its_numbers() -> None:
    drawn = [make(Random(seed)) for make in (tiny_problem, tiny_tasks) for seed in range(40)]
    keys = {key_of(one) for one in drawn}
    assert len(keys) == len({replace(one, name="") for one in drawn})
    one = drawn[0]
    assert key_of(replace(one, name="another")) == key_of(one)
    for other in (
        replace(one, microbatches=one.microbatches + 1),
        replace(one, objective=Objective.SPAN),
        replace(one, stages=(replace(one.stages[0], forward=one.stages[0].forward + 1), *one.stages[1:])),
        replace(one, units=Units(tick=Fraction(1, 3))),
    ):
        assert key_of(other) != key_of(one)
    assert key_of(one, Objective.SPAN) != key_of(one, Objective.MAKESPAN) != key_of(one, Objective.MAKESPAN, 3)


def test_what_is_read_is_what_was_found(table: dict[str, object]) -> None:
    """Fractions, that nothing fits, and that there are too many orders."""

    def every() -> list[object]:
        found: list[object] = []
        for one in (make(Random(seed)) for make in (tiny_tasks, tiny_problem) for seed in range(30)):
            try:
                found.append(optimum_of_tasks(one, one.objective, 2, 100))
            except TooManyOrdersError as error:
                found.append(str(error))
        return found

    first = every()
    assert {type(one) for one in first} == {Fraction, str, type(None)}
    assert len(table) == 60
    assert every() == first


def test_a_wrong_value_is_found_on_the_day_that_computes_it(
    table: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    @stored(fraction_as_json, fraction_of_json, ValueError)
    def half(number: int) -> Fraction | None:
        asked.append(number)
        return Fraction(number, 2)

    assert half(3) == half(3) == Fraction(3, 2) and asked == [3]
    table[next(iter(table))] = ["2"]
    monkeypatch.setattr(OPTIMA, "record", None)
    monkeypatch.setattr(OPTIMA, "read", True)
    assert half(3) == 2
    monkeypatch.undo()
    monkeypatch.setattr(OPTIMA, "stored", table)
    monkeypatch.setattr(OPTIMA, "record", None)
    monkeypatch.setattr(optima, "_drawn", lambda _: True)
    with pytest.raises(AssertionError, match="every order gives"):
        half(3)


def test_another_share_is_computed_every_day(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [key_of(number) for number in range(2000)]
    shares = []
    for seed in ("20261129", "20261130"):
        monkeypatch.setattr(optima, "SEED", seed)
        shares.append({key for key in keys if optima._drawn(key)})
    assert all(0.5 < len(share) * optima.SHARE / len(keys) < 2 for share in shares)
    assert len(shares[0] & shares[1]) < 0.3 * len(shares[0])
