"""Reductions, steps and sending streams with `--for`: what a runtime's files cannot hold is refused before a search."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from
from pipesched.results.solution import Status
from runtime.partitions.catalogue import PARTITION_FORMATS
from solver.solve import solve
from targets.plans import Planned, planned
from targets.schedules import expressed, restricted
from tests.support.counted import counted

ONCE = {"objective": "iteration", "parameters": {"reduce": {"time": 1}, "step": {"time": 1}}}
LAYERS = [{"name": "layer", "count": 3, "forward": 1, "backward": 2}]


def planned_for(target: str, features: dict[str, Any]) -> Planned:
    problem = plan_problem_from({"devices": 2, "microbatches": 4, "placement": "linear", "layers": LAYERS} | features)
    form = PARTITION_FORMATS[target]
    return planned(problem, problem, target, [form], counted(2), lambda _: None, lambda _: None, Event())


@pytest.mark.parametrize("target", ["deepspeed", "torchtitan"])
@pytest.mark.parametrize(
    ("features", "said"), [(ONCE, "collectives"), ({"transfer": {"time": 1, "on": "comm"}}, "several tasks")]
)
def test_a_plan_is_refused_whose_passes_no_file_of_the_runtime_holds(
    target: str, features: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=rf"--for {target}: found .*{said}.*; allowed: passes that are single tasks"):
        planned_for(target, features)


def test_megatron_reduces_and_steps_by_itself() -> None:
    assert planned_for("megatron-order", ONCE).found.best is not None
    problem = problem_from({"devices": 2, "microbatches": 2, "times": {"forward": 1, "backward": 2}} | ONCE)
    found = expressed(solve(restricted(problem, "megatron-order"), counted(4)), "megatron-order", problem)
    assert (found.status, found.value) == (Status.OPTIMAL, 11)
