"""Placements, small enough to see: which device holds which stage, and the chains that micro-batches walk."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipesched.problem import placement
from pipesched.problem.passes import B, F, Pass, PassKind
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from tests.support.makers import TIMES, problem


@pytest.mark.parametrize(
    ("where", "name", "stage_device", "stages_of", "previous", "following"),
    [
        (placement.linear(3), "linear", (0, 1, 2), ((0,), (1,), (2,)), (None, 0, 1), (1, 2, None)),
        (
            placement.interleaved(2, 3), "interleaved",
            (0, 1, 0, 1, 0, 1), ((0, 2, 4), (1, 3, 5)), (None, 0, 1, 2, 3, 4), (1, 2, 3, 4, 5, None),
        ),
        (placement.wave(2, 1), "wave", (0, 1), ((0,), (1,)), (None, 0), (1, None)),
        (
            placement.wave(2, 3), "wave",
            (0, 1, 1, 0, 0, 1), ((0, 3, 4), (1, 2, 5)), (None, 0, 1, 2, 3, 4), (1, 2, 3, 4, 5, None),
        ),
        (
            placement.v_shape(3), "v-shape",
            (0, 1, 2, 2, 1, 0), ((0, 5), (1, 4), (2, 3)), (None, 0, 1, 2, 3, 4), (1, 2, 3, 4, 5, None),
        ),
        (
            placement.bidirectional(3), "bidirectional",
            (0, 1, 2, 2, 1, 0), ((0, 5), (1, 4), (2, 3)), (None, 0, 1, None, 3, 4), (1, 2, None, 4, 5, None),
        ),
        (
            placement.explicit(2, [1, 0, 0, 1]), "explicit",
            (1, 0, 0, 1), ((1, 2), (0, 3)), (None, 0, 1, 2), (1, 2, 3, None),
        ),
        (placement.linear(1), "linear", (0,), ((0,),), (None,), (None,)),
    ],
)  # fmt: skip
def test_placements(
    where: Placement,
    name: str,
    stage_device: tuple[int, ...],
    stages_of: tuple[tuple[int, ...], ...],
    previous: tuple[int | None, ...],
    following: tuple[int | None, ...],
) -> None:
    assert (where.name, where.devices, where.stages) == (name, len(stages_of), len(stage_device))
    assert where.stage_device == stage_device
    assert where.stages_of == stages_of
    assert where.previous == previous
    assert where.next == following
    for device, held in enumerate(stages_of):
        assert [where.chunk(stage) for stage in held] == list(range(len(held)))
        assert all(stage_device[stage] == device for stage in held)


def test_chains() -> None:
    assert placement.v_shape(2).chains == ((0, 1, 2, 3),)
    assert placement.v_shape(2).chain_index == (0, 0, 0, 0)
    assert placement.bidirectional(2).chains == ((0, 1), (2, 3))
    assert placement.bidirectional(2).chain_index == (0, 0, 1, 1)


@pytest.mark.parametrize(("microbatches", "down"), [(1, 1), (2, 1), (3, 2), (4, 2), (7, 4)])
def test_the_larger_half_of_the_micro_batches_walks_down(microbatches: int, down: int) -> None:
    one = problem(2, microbatches, placement="bidirectional")
    assert one.microbatches_of == (range(down), range(down), range(down, microbatches), range(down, microbatches))
    assert [one.chain_of(j) for j in range(microbatches)] == [(0, 1)] * down + [(2, 3)] * (microbatches - down)


def needs(one: Problem, p: Pass, sender: PassKind) -> list[tuple[Pass, int]]:
    """What a pass waits for where all backwards are of this kind."""
    held = {Pass(kind, s, j) for kind in (F, sender) for s in range(one.placement.stages) for j in range(2)}
    return list(one.network.predecessors(p, held))


def test_links_add_to_the_time_of_a_stage_and_have_a_direction() -> None:
    one = replace(problem(2, 1, times={**TIMES, "transfer": [2, 0]}), links=((0, 10), (20, 0)))
    assert needs(one, Pass(F, 1, 0), B) == [(Pass(F, 0, 0), 12)]
    assert needs(one, Pass(B, 0, 0), B) == [(Pass(F, 0, 0), 0), (Pass(B, 1, 0), 22)]
