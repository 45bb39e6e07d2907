"""Every time and amount of memory of a stage is scaled, those of each feature included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from enum import Enum
from fractions import Fraction
from typing import Any

import pytest

from pipesched.checking.relaxed.microbatches import with_equal_microbatches
from pipesched.errors import BadInput
from pipesched.problem import placement
from pipesched.problem.blocks import Blocks
from pipesched.problem.features.walks import Walks
from pipesched.problem.kv_cache import KvCache
from pipesched.problem.memory_options import Offload, Recomputation
from pipesched.problem.passes import REDUCE, F
from pipesched.problem.problem import Problem
from pipesched.problem.resource import Resource
from pipesched.problem.scaled_stage import numbers_of, scaled_stage
from pipesched.problem.stage import Gather, Once, PassMemory, Stage, TaskSpec

# Each field has another value than its default: a new one fails here until it is scaled, or named below.
STAGE = Stage(
    forward=10,
    backward=12,
    weight=14,
    fused=16,
    transfer=18,
    blocks=Blocks(20, 22),
    activation=24,
    freed=26,
    static=28,
    tasks=((F, (TaskSpec("main", 10, "f", also=(Resource(0, "other"),)),)),),
    stream="main",
    offload=Offload(30, 32, "out", "in", 34),
    recompute=(Recomputation("all", 36, 38),),
    may_keep=False,
    kv_cache=KvCache(40, 42),
    workspace=PassMemory(44, 46, 48),
    until_end=PassMemory(50, 52, 54),
    once=(Once(REDUCE, TaskSpec("main", 56), 3),),
    gather=Gather(TaskSpec("main", 58), 60, 5),
    forward_only=True,
)
# Factors of micro-batches exclude blocks and passes for parameters.
WITH_FACTORS = replace(STAGE, blocks=Blocks(), once=(), gather=None)
TIMES = {*range(10, 24, 2), 30, 32, 36, 56, 58} - {18}
MEMORY = {*range(24, 62, 2)} - {28, 30, 32, 36, 56, 58}


def numbers(value: Any) -> Iterator[int]:
    """The whole numbers of 10 or more in a value of nested tuples; smaller ones are counts here."""
    if isinstance(value, tuple):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, int) and not isinstance(value, bool | Enum) and value >= 10:
        yield value


def values(stage: Stage) -> tuple[Any, ...]:
    return tuple(getattr(stage, one.name) for one in fields(stage))


def test_the_stage_has_every_feature() -> None:
    plain = Stage(0, 0, None, 0)
    assert [one.name for one in fields(Stage) if getattr(STAGE, one.name) == getattr(plain, one.name)] == []


def test_times_and_memory_are_scaled_apart() -> None:
    found = [*numbers(values(STAGE))]
    assert {*found} == TIMES | MEMORY | {18, 28}
    twice = [number * 2 if number in TIMES else number for number in found]
    assert [*numbers(values(scaled_stage(STAGE, 2, 1)))] == twice
    assert [*numbers(values(scaled_stage(STAGE, 1, 3)))] == [n * 3 if n in MEMORY else n for n in found]
    ticks, amounts = numbers_of(STAGE)
    assert ({*ticks}, {*amounts}) == (TIMES, MEMORY)


def of_one_stage(scale: Fraction) -> Problem:
    """A problem of one micro-batch, whose factor is `scale`."""
    return Problem(placement.linear(1), 1, (WITH_FACTORS,), walks=Walks(scale=(scale,)))


def test_the_check_scales_every_number_too() -> None:
    (found,) = with_equal_microbatches(of_one_stage(Fraction(3, 2))).stages
    before = (n for n in numbers(values(of_one_stage(Fraction(1)).stages[0])) if n != 28)
    assert [*numbers(values(found))] == [number * 3 // 2 for number in before]


@pytest.mark.parametrize("field", ["forward", "activation", "kv_cache", "workspace"])
def test_a_number_that_a_factor_makes_no_whole_one_is_refused(field: str) -> None:
    one = of_one_stage(Fraction(1, 2))
    odd = {
        "forward": replace(WITH_FACTORS, tasks=(), forward=11),
        "activation": replace(WITH_FACTORS, activation=25),
        "kv_cache": replace(WITH_FACTORS, kv_cache=KvCache(41, 42)),
        "workspace": replace(WITH_FACTORS, workspace=PassMemory(44, 47)),
    }
    with pytest.raises(BadInput, match="no multiples of 2"):
        replace(one, stages=(odd[field],))
