"""Activations that move to other devices in problem files: what is read, written back, refused, and not exported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from pipesched.problem.passes import OFFLOAD, RELOAD
from pipesched.problem.problem import Problem
from runtime.exporters.catalogue import EXPORTERS
from runtime.running.job import job_for
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.tasks.memory_decisions import rules, with_decisions
from tests.support.editor import accepts

PLAIN: dict[str, Any] = {"devices": 3, "microbatches": 2, "times": {"forward": 4, "backward": 6}}
COPIES = {"out": 3, "in": 2, "on": "nvlink"}


def problem(to: object, capacity: object = 2, **keys: object) -> Problem:
    return problem_from(PLAIN | {"memory": {"capacity": capacity, "offload": COPIES | {"to": to} | keys}})


@pytest.mark.parametrize(
    ("to", "peers"), [(2, [2, 2, None]), ([1, 0, "host"], [1, 0, None]), ([1, 2, 0], [1, 2, 0])], ids=str
)
def test_each_device_has_its_peer_and_files_keep_it(to: object, peers: list[int | None]) -> None:
    one = problem(to)
    assert [stage.offload and stage.offload.to for stage in one.stages] == peers
    assert problem_from(problem_document(one)) == one
    assert accepts(PLAIN | {"memory": {"offload": COPIES | {"to": to}}})


def test_the_network_has_the_other_device_as_the_reservoir_of_copies() -> None:
    network = problem([2, "host", "host"]).network
    assert network.reservoirs[2].devices == (0, 2) and network.reservoirs[0].devices == (0,)
    assert [one.devices for one in network.hosts] == [(1,), (2,)]
    assert network.changes((OFFLOAD, 0)) == ((0, (0, -1)), (2, (1, 0)))
    assert network.changes((RELOAD, 0)) == ((0, (1, 0)), (2, (0, -1)))
    assert network.changes((OFFLOAD, 1)) == ((1, (0, -1)), (3, (1, 0)))
    with pytest.raises(ValueError, match="gives back what other passes take"):
        network.drop(passes=[(OFFLOAD, 0), (RELOAD, 0)])


def test_without_a_capacity_other_devices_hold_any_number() -> None:
    one = problem_from(PLAIN | {"memory": {"offload": COPIES | {"to": 1}}})
    assert one.room == (None, None, None) and one.network.reservoirs[1].room is None


MISTAKES: dict[str, tuple[Any, str]] = {
    "offload.to: found 2 values": ([1, 0], "one device, or a list of 3, one per device"),
    "offload.to: found device 3": (3, "0 to 2"),
    "offload.to: found device 7": ([7, "host", "host"], "0 to 2, or host"),
    "offload.to[1]: found device 1 itself": (["host", 1, "host"], "another device, or host"),
    "offload.to: found ['peer'": (["peer", 1, 2], "a device, or a list, one per device: a device, or host"),
    "offload.to: found -1": (-1, "a device, or a list"),
}


@pytest.mark.parametrize("start", MISTAKES)
def test_each_mistake_has_its_line(start: str) -> None:
    to, allowed = MISTAKES[start]
    with pytest.raises(BadInput) as error:
        problem(to)
    assert len(error.value.args) == 1
    assert error.value.args[0].startswith(f"problem: memory.{start}") and allowed in error.value.args[0]


def test_a_single_device_has_no_peer() -> None:
    with pytest.raises(BadInput, match="found device 0, the only one"):
        problem_from(PLAIN | {"devices": 1, "memory": {"offload": COPIES | {"to": 0}}})


def test_a_host_that_nothing_moves_to_has_no_capacity() -> None:
    with pytest.raises(BadInput, match=r"host_capacity: found with memory\.offload\.to of every device"):
        problem([1, 2, 0], host_capacity=4)
    assert problem([1, 2, "host"], host_capacity=4).network.hosts[0] == (4, (2,))


def test_stages_of_a_device_that_move_apart_are_not_written() -> None:
    one = problem_from(PLAIN | {"placement": [0, 1, 2, 0], "memory": {"offload": COPIES | {"to": 1}}})
    first, *others = one.stages
    assert first.offload is not None
    copies = [first.offload._replace(to=2), *(stage.offload for stage in others)]
    with pytest.raises(ValueError, match="to one memory"):
        problem_document(one.with_stages(offload=copies))


def test_pipelines_move_to_their_own_device_or_to_another_pipelines_where_that_is_lost() -> None:
    memory = {"offload": COPIES | {"to": 2}}
    one = problem_from(PLAIN | {"memory": memory, "pipelines": {"count": 2, "lost": [[1, 2]]}})
    where = one.placement.stage_device
    found = {where[s]: stage.offload and stage.offload.to for s, stage in enumerate(one.stages)}
    assert found == {0: 2, 1: 2, 2: None, 3: 2, 4: 2}
    both = problem_from(PLAIN | {"memory": memory, "pipelines": {"count": 2}})
    assert {stage.offload.to for stage in both.stages if stage.offload} == {2, 5, None}


def test_runtimes_that_move_to_the_host_refuse() -> None:
    memory = {"capacity": [1, 1, 3], "offload": COPIES | {"to": 2}, "decide": {"offload": ["always", "free", "free"]}}
    one = problem_from(PLAIN | {"memory": memory})
    orders = (with_decisions(one, sequential(one.keeping_activations()), rule) for rule in rules(one))
    order = next(order for order in orders if order is not None)
    timeline = best_times(one, order)
    able = {exporter.name for exporter in EXPORTERS if exporter.lacks(timeline) is None}
    assert able == {"chrome-trace", "program"}
    copies = json.loads(EXPORTERS["program"].export(timeline)[".program.json"])["streams"][0]["nvlink"]
    assert {one["memory_of"] for one in copies} == {2}
    for exporter in (one for one in EXPORTERS if one.name not in able):
        with pytest.raises(BadInput, match="chrome-trace"):
            exporter.export(timeline)
    with pytest.raises(BadInput, match=r"found memory\.offload\.to"):
        job_for(timeline)
