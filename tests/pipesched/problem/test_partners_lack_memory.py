"""Devices that together cannot hold one micro-batch: refused in one line, and only where the exact model has none."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from pipesched.files.problem_file import problem_from
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from solver.limits import Limits
from solver.solve import solve
from tests.support.exact_optimum import exact_optimum
from tests.support.tiny_partners import further_partners, tiny_partners

PLACED = {"devices": 2, "microbatches": 4, "placement": [0, 1, 0], "times": {"forward": 1, "backward": 2}}
OFFLOAD = {"out": 1, "in": 1, "on": "copy", "to": [1, "host"]}


def partners(capacity: list[int], **keys: object) -> Problem:
    memory = {"unit": "GiB", "capacity": capacity, "activation": [3, 4, 3], "offload": OFFLOAD}
    return problem_from(PLACED | {"memory": memory | {"decide": {"offload": ["free", "never", "free"]}, **keys}})


@pytest.mark.parametrize(("capacity", "what"), [([5, 4], "too little in all"), ([5, 5], "enough, but in no two parts")])
def test_the_line_says_which_devices_lack_what(capacity: list[int], what: str) -> None:
    one = partners(capacity)
    line = (
        "memory: however activations move between them, devices 0 and 1 cannot hold those of stages 0, 1, 2 of one "
        f"micro-batch at once; their capacities are 5 GiB and {capacity[1]} GiB"
    )
    assert why_infeasible(one) == line, what
    assert solve(one, Limits(workers=1, deterministic=5)).reason == line


def test_static_memory_is_apart() -> None:
    found = why_infeasible(partners([6, 6], static=[1, 1]))
    assert found is not None
    assert "of one micro-batch at once in addition to 2 GiB of static memory; their capacities" in found
    assert found.endswith("6 GiB and 6 GiB")


@pytest.mark.parametrize("capacity", [[6, 4], [5, 7]])
def test_memory_for_one_micro_batch_is_enough(capacity: list[int]) -> None:
    assert why_infeasible(partners(capacity)) is None
    assert solve(partners(capacity), Limits(workers=1, deterministic=20)).timeline is not None


def test_many_stages_are_left_to_the_exact_model() -> None:
    """Of forty stages with two states each the loads are too many to look at."""
    placed = {"devices": 2, "microbatches": 1, "placement": [0] * 40 + [1], "times": {"forward": 1, "backward": 2}}
    sizes = [2 ** min(at, 30) for at in range(40)]
    memory = {"capacity": sum(sizes), "activation": [*sizes, 1], "offload": OFFLOAD}
    assert why_infeasible(problem_from(placed | {"memory": memory})) is None


def test_nothing_is_refused_that_the_exact_model_can_schedule() -> None:
    lines = Counter[str]()
    for number in range(1_000):
        rng = Random(number)
        one = (tiny_partners if rng.random() < 0.5 else further_partners)(rng)
        less = [None if room is None else max(1, room - rng.choice((0, 1, 2, 3))) for room in one.room]
        one = one.with_room(less)
        reason = why_infeasible(one)
        if reason is not None and "however activations move" in reason:
            assert exact_optimum(one) is None, (number, reason)
            lines[one.placement.name] += 1
    assert sum(lines.values()) > 15, lines
