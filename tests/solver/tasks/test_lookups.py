"""Tasks that need nothing of the stage before: published optima, brute force, bounds, the validator, and the file."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.errors import BadInput
from pipesched.problem.passes import Task, parse_pass
from pipesched.problem.problem import Problem
from pipesched.problem.without_lookups import without_lookups
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.bounds.saving.certificates import certificates
from solver.limits import Limits
from solver.solve import solve
from tests.support.makers import problem, schedule
from tests.support.task_brute_force import always_fits, optimum, tiny_tasks, with_lookups

FORWARD: list[dict[str, Any]] = [{"name": "lookup", "time": 4, "needs": "nothing"}, {"name": "dense", "time": 6}]
BACKWARD: list[dict[str, Any]] = [{"name": "grad", "time": 20}]


def lookups(devices: int, microbatches: int, **keys: Any) -> Problem:
    tasks = {"forward": FORWARD, "backward": BACKWARD}
    return problem(devices, microbatches, **{"times": {}, "tasks": tasks} | keys)


@pytest.mark.parametrize(("capacity", "value"), [(4, 306), (5, 302), (6, 300)])
def test_lookups_fill_idle_time(capacity: int, value: int) -> None:
    """With a lookup that waits like the rest of its forward it is 330 at any memory."""
    found = solve(lookups(4, 8, memory={"capacity": capacity}), Limits(seconds=600, workers=1, deterministic=30))
    assert (found.status, found.value) == (Status.OPTIMAL, value)
    assert found.timeline is not None and validate(found.timeline) == []


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_solutions_and_bounds_against_brute_force(first: int) -> None:
    tried = 0
    for seed in range(first, first + 10):
        random = Random(seed)
        one = with_lookups(random, tiny_tasks(random))
        if without_lookups(one) is one:
            continue
        try:
            best = optimum(one, one.objective)
        except ValueError:
            continue
        if best is None:
            continue
        tried += 1
        for certificate in certificates(one, one.objective):
            assert certificate.value_ticks <= best, (seed, certificate)
            assert check_bound(one, certificate).verdict is not Verdict.REFUSED
        found = solve(one, Limits(seconds=600, workers=1, deterministic=3))
        assert found.timeline is not None and validate(found.timeline) == []
        assert always_fits(one, found.timeline.schedule), seed
        ticks = found.problem.tick / one.tick
        assert found.lower_bound_ticks * ticks <= best, seed
        value = measure(found.timeline).value_ticks(one.objective) * ticks
        assert value >= best, seed
        assert found.status is not Status.OPTIMAL or value == best, seed
    assert tried > 1


def test_a_lookup_starts_at_once_and_what_follows_when_its_input_is_there() -> None:
    one = lookups(2, 1)
    timeline = simulate(one, schedule("F0.0 BW0.0", "F1.0 BW1.0"))
    second = parse_pass("F1.0")
    assert (timeline.starts[Task(second, 0)], timeline.starts[Task(second, 1)]) == (0, 5)  # a tick is 2
    assert validate(timeline) == []
    sooner = Timeline(one, timeline.schedule, {**timeline.starts, Task(second, 1): 4})
    assert [violation.rule for violation in validate(sooner)] == ["precedence"]


@pytest.mark.parametrize(
    ("keys", "mistake"),
    [
        ({"forward": FORWARD[:1]}, "tasks.forward: found no task that needs its input"),
        ({"forward": FORWARD[::-1]}, "behind one that needs its input"),
        ({"backward": [BACKWARD[0] | {"needs": "nothing"}]}, "tasks.backward[0].needs: found nothing"),
        ({"layers": 2}, "tasks.layers: found 2 with a task that needs nothing"),
        ({"forward": [FORWARD[0] | {"needs": "all"}, FORWARD[1]]}, "tasks.forward[0].needs: found 'all'"),
    ],
)
def test_mistakes(keys: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as caught:
        lookups(2, 2, tasks={"forward": FORWARD, "backward": BACKWARD} | keys)
    assert any(mistake in line for line in caught.value.mistakes)
    with pytest.raises(BadInput, match="objective: found period"):
        lookups(2, 2, objective="period")
