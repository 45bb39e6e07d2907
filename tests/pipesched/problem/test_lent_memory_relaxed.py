"""Relaxations of problems whose activations move to other devices: those have as much room as the copies may take."""

from __future__ import annotations

from typing import Any

from pipesched.checking.relaxed.parameters import without_parameters
from pipesched.checking.relaxed.pass_memory import without_pass_memory
from pipesched.files.problem_file import problem_from
from pipesched.problem.passes_alone import passes_alone
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.least_memory import with_least_activations
from pipesched.problem.relaxed.pass_memory import drop_pass_memory

# Device 0 moves its activations to device 1, which keeps its own.
MEMORY: dict[str, Any] = {
    "capacity": 6,
    "offload": {"out": 1, "in": 1, "to": [1, "host"]},
    "decide": {"offload": ["free", "never"]},
}


def problem(memory: dict[str, Any], **keys: object) -> Problem:
    document = {"devices": 2, "microbatches": 2, "times": {"forward": 2, "backward": 2}}
    return problem_from(document | {"memory": MEMORY | memory} | keys)


def test_parameters_need_not_be_there_while_activations_of_others_come() -> None:
    gathered = {"gather": {"time": 1, "memory": 2, "keep": "free"}}
    one = problem({}, parameters=gathered, objective="iteration")
    for relaxed in (passes_alone(one, room_for=min), without_parameters(one)):
        assert relaxed.room == one.room
    kept = problem({"decide": {"offload": "never"}}, parameters=gathered, objective="iteration")
    for relaxed in (passes_alone(kept, room_for=min), without_parameters(kept)):
        assert all(less < room for less, room in zip(relaxed.room, kept.room, strict=True))


def test_activations_of_others_come_without_workspace() -> None:
    workspace = {"workspace": {"forward": 1, "backward": 1}}
    one, kept = problem(workspace), problem(workspace | {"decide": {"offload": "never"}})
    for relaxed in (drop_pass_memory(one), without_pass_memory(one)):
        assert relaxed.room == one.room
    for relaxed in (drop_pass_memory(kept), without_pass_memory(kept)):
        assert relaxed.room == (5, 5)


def test_without_copies_no_device_has_activations_of_others() -> None:
    relaxed = with_least_activations(problem({}))
    assert not relaxed.network.elsewhere and relaxed.network.reservoirs[1].devices == (1,)
