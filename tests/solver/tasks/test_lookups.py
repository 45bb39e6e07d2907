"""Tasks that need nothing of the stage before: published optima, and the file."""

from __future__ import annotations

from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.problem.problem import Problem
from pipesched.results.solution import Status
from pipesched.validation.validator import validate
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import problem

FORWARD: list[dict[str, Any]] = [{"name": "lookup", "time": 4, "needs": "nothing"}, {"name": "dense", "time": 6}]
BACKWARD: list[dict[str, Any]] = [{"name": "grad", "time": 20}]


def lookups(devices: int, microbatches: int, **keys: Any) -> Problem:
    tasks = {"forward": FORWARD, "backward": BACKWARD}
    return problem(devices, microbatches, **{"times": {}, "tasks": tasks} | keys)


@pytest.mark.parametrize(("capacity", "value"), [(4, 306), (5, 302), (6, 300)])
def test_lookups_fill_idle_time(capacity: int, value: int) -> None:
    """With a lookup that waits like the rest of its forward it is 330 at any memory."""
    found = solve(lookups(4, 8, memory={"capacity": capacity}), counted(30))
    assert (found.status, found.value) == (Status.OPTIMAL, value)
    assert found.timeline is not None and validate(found.timeline) == []


@pytest.mark.parametrize(
    ("keys", "mistake"),
    [
        ({"forward": FORWARD[:1]}, "tasks.forward: found no task that needs its input"),
        ({"forward": FORWARD[::-1]}, "behind one that needs its input"),
        ({"backward": [BACKWARD[0] | {"needs": "nothing"}]}, "tasks.backward[0].needs: found nothing"),
        ({"layers": 2}, "tasks.layers: found with a task that needs nothing"),
        ({"forward": [FORWARD[0] | {"needs": "all"}, FORWARD[1]]}, "tasks.forward[0].needs: found 'all'"),
    ],
)
def test_mistakes(keys: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as caught:
        lookups(2, 2, tasks={"forward": FORWARD, "backward": BACKWARD} | keys)
    assert any(mistake in line for line in caught.value.mistakes)
    with pytest.raises(BadInput, match="objective: found period"):
        lookups(2, 2, objective="period")


def test_what_is_proved_of_tasks_as_stages_counts_no_lookup_as_one() -> None:
    """Without the shift the order of the stages had a cycle: `solve` ended in a traceback."""
    found = solve(
        lookups(
            2, 2,
            tasks={"forward": [{"name": "lookup", "time": 3, "needs": "nothing"}, {"name": "attn", "time": 3}],
                   "backward": [{"name": "a2a", "on": "comm", "time": 3}, {"name": "attn", "time": [2, 1]}]},
            streams=["compute", "comm"], memory={"activation": [3, 1], "capacity": 3},
        ),
        counted(30),
    )  # fmt: skip
    assert found.status is Status.OPTIMAL
    assert found.timeline is not None and validate(found.timeline) == []
