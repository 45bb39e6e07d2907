"""When a backward run as B and W at once is never worse than one in one go, and when it may be."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import BW, B, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import TaskSpec
from pipesched.results.solution import Status
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import problem
from tests.support.task_brute_force import optimum

_OTHER = Resource(1, "compute")
_TASKS: dict[str, Any] = {
    "forward": [{"name": "f", "time": 1}],
    "backward": [{"name": "x", "time": 1}],
    "weight": [{"name": "w", "time": 1, "after": "x"}],
}
_TWICE: dict[str, Any] = _TASKS | {
    "backward": [{"name": "x", "time": 1}, {"name": "y", "time": 1}],
    "weight": [{"name": "w", "time": 1, "after": "x"}, {"name": "v", "time": 1, "after": "y"}],
}


def reducing(buckets: int, tasks: dict[str, Any] = _TASKS, **keys: object) -> Problem:
    return problem(
        1, 1, streams=["compute"], tasks=tasks, times={}, parameters={"reduce": {"time": 4, "buckets": buckets}},
        objective="iteration", **keys,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "dominated", "least"),
    [
        # B and W at once are the tasks x and w: the first of two buckets is reduced behind x.
        (reducing(2), False, Fraction(6)),
        (reducing(1), True, Fraction(7)),
        # x, w, y, v: the first bucket waits for w, and so it does of W.
        (reducing(2, _TWICE), True, Fraction(1 + 2 + 4)),
        # The first of three waits for x and w of BW, which is w of W; the second for y, and of W for w and v.
        (reducing(3, _TWICE), False, Fraction(1 + 2 + 4)),
    ],
)
def test_a_bucket_may_be_reduced_sooner_behind_a_backward_in_one_go(
    one: Problem, dominated: bool, least: Fraction
) -> None:
    assert fused_is_dominated(one, 0) is dominated
    best = optimum(one, one.objective)
    assert best is not None and best * one.tick == least
    found = solve(one, counted(3))
    assert (found.status, found.value_ticks) == (Status.OPTIMAL, best) and not found.notes


@pytest.mark.parametrize(
    ("split", "fused", "dominated"), [((), (), True), ((_OTHER,), (), False), ((_OTHER,), (_OTHER,), True)]
)
def test_a_split_backward_that_occupies_more_streams(
    split: tuple[Resource, ...], fused: tuple[Resource, ...], dominated: bool
) -> None:
    """Device 1 computes meanwhile what the B of device 0 would have to wait for, and its BW does not."""
    one = problem(2, 1)
    tasks = {B: (TaskSpec("compute", 1, also=split),), W: (TaskSpec("compute", 1),)}
    first = one.stages[0].with_tasks(tasks | {BW: (TaskSpec("compute", 2, also=fused),)})
    one = replace(one, stages=(first, *one.stages[1:]))
    assert fused_is_dominated(one, 0) is dominated


def test_weight_tasks_of_a_stage_that_computes_with_the_parameters_of_another() -> None:
    """Both directions of a placement reduce the gradients of one set of parameters, in the buckets of its holder."""
    one = problem(
        2, 2, placement="bidirectional", streams=["compute"], tasks=_TASKS, times={},
        parameters={"reduce": {"time": 1, "buckets": 2}}, objective="iteration",
    )  # fmt: skip
    assert not any(fused_is_dominated(one, stage) for stage in range(4))
