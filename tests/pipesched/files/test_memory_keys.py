"""Offload and recomputation in problem and schedule files: what is read, written back, refused, and left alone."""

from __future__ import annotations

from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from pipesched.problem.features.device_resources import HostPool, SharedStream
from pipesched.problem.memory_options import Offload, Recomputation
from pipesched.problem.passes import RECOMPUTATIONS
from pipesched.problem.problem import Problem
from tests.support.editor import accepts

PLAIN: dict[str, Any] = {"devices": 2, "microbatches": 2, "times": {"forward": 4, "backward": 6, "weight": 2}}
COPIES = {"out": 3, "in": [2, 5], "on": [{"stream": "pcie", "devices": [0, 1]}, "h2d"], "amount": 0.5,
          "host_capacity": {"capacity": 8, "devices": [0, 1]}}  # fmt: skip
WAYS = [{"name": "full", "time": 4, "keeps": 0.25}, {"name": "norm", "time": [1, 2], "keeps": 0.75}]


def problem(**memory: object) -> Problem:
    return problem_from(PLAIN | {"memory": {"capacity": 2} | memory})


def test_every_key_is_read() -> None:
    one = problem(
        offload=COPIES, recompute=WAYS, decide={"offload": ["free", "never"], "recompute": ["free", "always"]}
    )
    first, second = one.stages
    assert one.resolution == first.activation**-1
    assert first.offload == Offload(3, 2, "pcie", "h2d", first.activation // 2)
    assert first.recompute == (Recomputation("full", 4, 1), Recomputation("norm", 1, 3))
    assert (first.may_keep, second.may_keep, second.offload) == (True, False, None)
    assert second.saving_kinds == RECOMPUTATIONS[:2]
    assert one.resources.hosts == (HostPool(8 * first.activation, (0, 1)),)
    assert one.resources.shared_streams == (SharedStream("pcie", (0, 1)),)


def test_what_is_left_out_has_a_default() -> None:
    """All of the activation moves, on two streams; hosts have no limit; the solver decides."""
    one = problem(offload={"out": 3, "in": 2}, recompute=[{"name": "full", "time": 4}])
    assert one.stages[0].offload == Offload(3, 2, "d2h", "h2d", one.stages[0].activation)
    assert one.stages[0].recompute[0].keeps == 0
    assert one.stages[0].may_keep and one.resources.hosts == ()


def test_what_is_never_done_leaves_a_plain_problem() -> None:
    plain = problem()
    assert (
        problem(offload=COPIES | {"amount": 1, "host_capacity": 1}, decide={"offload": "never"}).stages == plain.stages
    )
    assert plain.network.one_task_each and not problem(recompute=WAYS).network.one_task_each
    assert problem_document(plain)["memory"].keys() == {"unit", "activation", "freed_by_backward", "capacity"}


FORMS: dict[str, dict[str, object]] = {
    "all": {"offload": COPIES, "recompute": WAYS},
    "per stage": {"offload": COPIES, "recompute": WAYS, "decide": {"offload": ["free", "always"], "recompute": "free"}},
    "one stream": {"offload": {"out": 1, "in": 1, "on": "copy", "host_capacity": [3, 4]}},
    "always": {"recompute": WAYS, "decide": {"recompute": "always"}},
    "groups": {"offload": COPIES | {"on": {"stream": "x", "devices": [[0], [1]]}, "host_capacity": 5}},
}


@pytest.mark.parametrize("memory", FORMS.values(), ids=FORMS)
def test_a_problem_is_written_as_it_was_read(memory: dict[str, object]) -> None:
    one = problem(**memory)
    assert problem_from(problem_document(one)) == one
    assert accepts(PLAIN | {"memory": memory})


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "offload.in": ({"offload": {"out": 1}}, "missing"),
    "offload.amount": ({"offload": COPIES | {"amount": 2}}, "at most the activation"),
    "offload.out": ({"offload": COPIES | {"out": [1, 2, 3]}}, "a list of 2"),
    "offload.on": ({"offload": COPIES | {"on": 3}}, "devices that share it"),
    "offload.on.devices": ({"offload": COPIES | {"on": {"stream": "x", "devices": [0, 2]}}}, "0 to 1"),
    "offload.host_capacity": ({"offload": COPIES | {"host_capacity": [1, 2, 3]}}, "one per device"),
    "recompute[1].name": ({"recompute": [WAYS[0], WAYS[0]]}, "each name once"),
    "recompute[0].time": ({"recompute": [{"name": "full"}]}, "missing"),
    "recompute[0].keeps": ({"recompute": [{"name": "full", "time": 1, "keeps": 1.5}]}, "at most the activation"),
    "recompute": ({"recompute": [{"name": f"way-{n}", "time": 1} for n in range(7)]}, "1 to 6"),
    "decide.offload": ({"decide": {"offload": "free"}}, "without memory.offload"),
    "decide.recompute": ({"recompute": WAYS, "decide": {"recompute": ["free", "mostly"]}}, "free, never, always"),
    "decide": (
        {"offload": COPIES, "recompute": WAYS, "decide": {"offload": "always", "recompute": "always"}},
        "stage 0, 1",
    ),
}


@pytest.mark.parametrize("path", MISTAKES)
def test_each_mistake_has_its_line(path: str) -> None:
    memory, allowed = MISTAKES[path]
    with pytest.raises(BadInput) as error:
        problem(**memory)
    assert len(error.value.args) == 1
    assert error.value.args[0].startswith(f"problem: memory.{path}: ") and allowed in error.value.args[0]


def test_a_shared_stream_is_for_copies_alone() -> None:
    memory = {"offload": COPIES | {"on": {"stream": "net", "devices": [0, 1]}}}
    times = {"forward": 1, "backward": 1, "transfer": {"time": 1, "on": "net"}}
    with pytest.raises(BadInput, match=r"^problem: memory\.offload\.on: found net, which runs other tasks"):
        problem_from(PLAIN | {"streams": ["compute", "net"], "times": times, "memory": memory})


def test_blocks_and_options_exclude_each_other() -> None:
    times = {"forward": 1, "backward": 1, "overlapped": 2}
    with pytest.raises(BadInput, match=r"^problem: times\.overlapped: found with memory\.offload"):
        problem_from(PLAIN | {"times": times, "memory": {"offload": COPIES}})
