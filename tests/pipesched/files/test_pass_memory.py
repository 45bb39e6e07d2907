"""Workspace and memory kept until the end: what a file says, what passes take, and who is held to it."""

from __future__ import annotations

from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from, with_objective
from pipesched.files.problems.document import problem_document
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Objective
from pipesched.schedule.metrics import memory_steps
from pipesched.schedule.schedule import schedule_of
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.solve import solve
from tests.support.counted import counted

TIMES = {"forward": 1, "backward": 2, "weight": 1, "fused": 3}
WORKSPACE = {"forward": 0.5, "backward": 1, "weight": 2}
UNTIL_END = {"forward": 0.25, "backward": 0.75}


def _document(**memory: Any) -> dict[str, Any]:
    held = {"activation": 4, "freed_by_backward": 1, "workspace": WORKSPACE, "until_end": UNTIL_END}
    return {"devices": 1, "microbatches": 2, "times": TIMES, "memory": held | memory}


def _levels(order: list[Pass], **memory: Any) -> list[tuple[int, float]]:
    problem = problem_from(_document(**memory))
    timeline = simulate(problem, schedule_of([order], "by hand"))
    return [(tick, float(level * problem.resolution)) for tick, level in memory_steps(timeline, 0)]


def test_levels_by_hand() -> None:
    split = [Pass(F, 0, 0), Pass(B, 0, 0), Pass(W, 0, 0), Pass(F, 0, 1), Pass(BW, 0, 1)]
    # F takes 4 + 0.25 and holds 0.5 more until 1; B 0.75 and 1 more until 3, when it gives back 1; W 2 until 4.
    # After both micro-batches 2 x (0.25 + 0.75) stay. The full backward holds the larger workspace, 2.
    assert dict(_levels(split)) == {0: 4.75, 1: 6, 3: 6, 4: 5.75, 5: 8, 8: 2}


@pytest.mark.parametrize(("capacity", "fits"), [(8, True), (7.75, False)])
def test_the_validator_counts_both(capacity: float, fits: bool) -> None:
    order = [Pass(F, 0, 0), Pass(B, 0, 0), Pass(W, 0, 0), Pass(F, 0, 1), Pass(BW, 0, 1)]
    problem = problem_from(_document(capacity=capacity))
    found = validate(simulate(problem, schedule_of([order], "by hand")))
    assert [one.rule for one in found] == ([] if fits else ["memory"])


def test_a_file_is_read_back() -> None:
    given = {"forward": [0.5, 1], "backward": 1}
    problem = problem_from(_document(capacity=9, workspace=given) | {"devices": 2})
    written = problem_document(problem)
    assert problem_from(written) == problem
    assert written["memory"]["workspace"] == given and written["memory"]["until_end"] == UNTIL_END


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ({"memory": {"workspace": {"forward": -1}}}, "memory.workspace.forward: found -1; allowed: a number of at least 0"),
        ({"memory": {"workspace": {"forward": [1, 2]}}}, "memory.workspace.forward: found 2 values; allowed: one number"),
        ({"memory": {"until_end": {"weight": 1}}, "times": {"forward": 1, "backward": 1}},
         "memory.until_end.weight: found without times.weight; allowed: with it, or as part of backward"),
        ({"times": TIMES | {"overlapped": 2}}, "times.overlapped: found with memory.workspace; allowed: one of the two"),
        ({"objective": "period"}, "objective: found period with memory.until_end; allowed: makespan or span"),
        ({"memory": {"workspace": {"forwards": 1}}}, "memory.workspace.forwards: unknown key"),
    ],
)  # fmt: skip
def test_mistakes(change: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as error:
        problem_from(_document() | change)
    assert any(mistake in line for line in error.value.mistakes), error.value.mistakes


def test_no_period_of_what_is_never_given_back() -> None:
    one = problem_from(_document())
    with pytest.raises(BadInput, match=r"objective: found period with memory\.until_end"):
        with_objective(one, Objective.PERIOD)
    assert with_objective(problem_from(_document(until_end={})), Objective.PERIOD)


def test_units() -> None:
    document = _document(unit="GiB", workspace={"forward": "512 MiB"})
    assert problem_document(problem_from(document))["memory"]["workspace"] == {"forward": 0.5}


@pytest.mark.parametrize(("weight", "capacity", "period"), [(0, 2, 4), (2, 3, 4), (2, 2, 5)])
def test_a_period_with_workspace(weight: int, capacity: int, period: int) -> None:
    """A full backward, 1 shorter than B and W, holds the workspace of W beside its activation; W alone does not."""
    times = {"forward": 1, "backward": 2, "weight": 2, "fused": 3}
    memory = {"capacity": capacity, "activation": 1, "freed_by_backward": 1, "workspace": {"weight": weight}}
    document = {"devices": 1, "microbatches": 4, "times": times, "memory": memory}
    problem = problem_from(document | {"objective": "period"})
    assert solve(problem, counted(2)).value_ticks == period
    whole = solve(problem_from(document), counted(2))
    assert (whole.value_ticks, whole.lower_bound_ticks) == (4 * period, 4 * period)


def test_one_that_does_not_fit_is_named() -> None:
    found = solve(problem_from(_document(capacity=6)), counted(2))
    assert found.reason == (
        "memory: device 0 must hold the activations of stage 0 of one micro-batch at once, with what passes hold while "
        "they run or keep until the end, 7 activations; its capacity is 6 activations"
    )
