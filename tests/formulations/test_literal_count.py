"""How many order literals a problem needs: counted without looking at every pair, and equal to what that would find."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from formulations.variables.operations import Operation, StaticOrder
from formulations.variables.order_literals import literal_count
from pipesched.problem.problem import Problem
from tests.support.makers import PLACEMENTS, problem


def by_pairs(one: Problem) -> int:
    order = StaticOrder(one)
    pairs = [pair for device in range(one.devices) for pair in combinations(order.operations(device), 2)]
    return sum(not (order.precedes(x, y) or order.precedes(y, x)) for x, y in pairs)


@pytest.mark.parametrize("name", PLACEMENTS)
def test_the_count_is_that_of_all_pairs(name: str) -> None:
    for seed in range(40):
        rng = Random(seed)
        times: dict[str, object] = {"forward": rng.randrange(4), "backward": 2}
        if rng.random() < 0.8:
            times["weight"] = 3
            times |= {"fused": rng.randrange(3, 7)} if rng.random() < 0.5 else {}
        taken = rng.randrange(1, 5)
        memory: dict[str, object] = {"activation": taken, "freed_by_backward": rng.randrange(-2, taken + 1)}
        if rng.random() < 0.8:
            memory["capacity"] = rng.randrange(taken, 6 * taken)
        one = problem(2, rng.randrange(1, 8), **PLACEMENTS[name](2), times=times, memory=memory)
        assert literal_count(one, range(2)) == by_pairs(one)


def test_the_count_of_a_large_problem_looks_at_few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    precedes = StaticOrder.precedes

    def counted(order: StaticOrder, x: Operation, y: Operation) -> bool:
        nonlocal asked
        asked += 1
        return precedes(order, x, y)

    monkeypatch.setattr(StaticOrder, "precedes", counted)
    one = problem(256, 512, memory={"capacity": 256, "freed_by_backward": 0.25})
    assert literal_count(one, range(256)) == 84_515_840
    assert asked < 256 * 100
