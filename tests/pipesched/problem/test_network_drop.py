"""What may be dropped of a task network, and what is refused since a memory would hold more than before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipesched.problem import placement
from pipesched.problem.memory_options import Offload
from pipesched.problem.network.task_network import TaskType
from pipesched.problem.passes import BW, OFFLOAD, REDUCE, RELOAD, RESHARD, UNSHARD, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Gather, Once, Stage, TaskSpec

_TWO = (TaskSpec("compute", 1), TaskSpec("comm", 2))
STAGE = Stage(
    3,
    3,
    2,
    5,
    tasks=((F, _TWO), (B, _TWO), (BW, (*_TWO, TaskSpec("compute", 2)))),
    offload=Offload(1, 1, "d2h", "h2d", 1),
    gather=Gather(TaskSpec("dp", 2), 4, 1),
    once=(Once(REDUCE, TaskSpec("dp", 2)),),
)
NETWORK = Problem(placement.linear(1), 2, (STAGE,)).with_room([9]).network


@pytest.mark.parametrize(
    "passes", [(OFFLOAD,), (RELOAD,), (OFFLOAD, RELOAD), (UNSHARD,), (RESHARD,), (F,), (F, B, W, BW)]
)
def test_passes_that_take_memory_stay(passes: tuple[PassKind, ...]) -> None:
    with pytest.raises(ValueError, match="gives back what other passes take"):
        NETWORK.drop(passes=[(kind, 0) for kind in passes])


def test_a_pass_keeps_the_task_with_which_it_ends() -> None:
    with pytest.raises(ValueError, match="ends with one of its first 2 tasks"):
        NETWORK.drop(leading={(F, 0): 2})


def test_parameters_are_gathered_and_dropped_together() -> None:
    left = NETWORK.drop(passes=[(UNSHARD, 0), (RESHARD, 0), (REDUCE, 0)])
    assert left == NETWORK.of_microbatches and not left.has_collectives
    assert all(arc.after.kind is not REDUCE for arc in left.arcs)


def test_tasks_that_are_left_are_numbered_from_0_on() -> None:
    left = NETWORK.drop(leading={(F, 0): 1})
    assert left.tasks[F, 0] == NETWORK.tasks[F, 0][1:] and left.ends[F, 0] == (0,)
    into = {arc.alternatives for arc in left.arcs_into[BW, 0] if arc.after.part == 0}
    assert ((TaskType(F, 0, 0),) in into) and not left.arcs_into[F, 0]


def test_an_arc_binds_where_the_alternative_that_is_left_runs() -> None:
    """The first bucket waits for the first task of a W or a BW."""
    buckets = replace(
        STAGE, once=(Once(REDUCE, TaskSpec("dp", 2), 3),), tasks=(*STAGE.tasks, (W, (TaskSpec("compute", 1),) * 3))
    )
    network = Problem(placement.linear(1), 2, (buckets,)).network
    first = {(TaskType(W, 0, 0), TaskType(BW, 0, 0))}
    assert first <= {arc.alternatives for arc in network.arcs_into[REDUCE, 0] if not arc.optional}
    left = network.drop(leading={(BW, 0): 1})
    assert [arc.optional for arc in left.arcs_into[REDUCE, 0] if arc.alternatives == (TaskType(W, 0, 0),)] == [True]


def test_limits_of_devices_are_dropped() -> None:
    assert NETWORK.drop(limits=[0]) == replace(NETWORK, room=(None,)) and NETWORK.drop() == NETWORK
