"""Which fractions of a tick a span may be: of drawn problems of every feature, the search's answer and the check's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from pipesched.checking.attainable import denominators
from pipesched.problem.attainable_spans import largest_denominator
from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.problem.problem import Objective, Problem
from tests.support.makers import problem
from tests.support.mode_problems import mode_problem
from tests.support.module_problems import tiny_modules
from tests.support.open_ends import open_ends
from tests.support.piece_problems import tiny_pieces, tiny_saving_pieces
from tests.support.task_brute_force import (
    TooManyOrdersError,
    optimum,
    tiny_gathers,
    tiny_reductions,
    tiny_tasks,
    with_lookups,
)
from tests.support.tiny_memory import tiny_memory, tiny_unequal_memory


def lookups(random: Random) -> Problem:
    return with_lookups(random, tiny_tasks(random))


_MAKERS: tuple[Callable[[Random], Problem], ...] = (
    tiny_pieces, tiny_saving_pieces, tiny_modules, mode_problem, tiny_memory, tiny_unequal_memory, tiny_tasks,
    tiny_reductions, tiny_gathers, lookups,
)  # fmt: skip


def in_span(make: Callable[[Random], Problem], seed: int) -> Problem:
    return replace(without_scale(make(Random(seed))), objective=Objective.SPAN)


@pytest.mark.parametrize("make", _MAKERS)
def test_the_check_says_of_the_problem_what_the_search_reads_off_the_network(make: Callable[[Random], Problem]) -> None:
    seen = Counter[tuple[bool, int]]()
    for seed in range(60):
        one = in_span(make, seed)
        own = largest_denominator(one)
        assert denominators(one) == own, seed
        assert largest_denominator(replace(one, objective=Objective.MAKESPAN)) == 1
        seen[own > 1, one.devices] += 1
    assert make in (tiny_saving_pieces,) or {more for more, _ in seen} == {True, False}


@pytest.mark.parametrize("kind", ["lookups", "parameters", "weights"])
def test_least_spans_by_every_order_have_no_other_denominators(kind: str) -> None:
    seen = Counter[int]()
    for seed in range(40):
        one = open_ends(Random(seed), kind)
        assert denominators(one) == largest_denominator(one) == 2
        with suppress(TooManyOrdersError):
            least = optimum(one, one.objective, 4, 3_000)
            assert least is not None
            seen[least.denominator] += 1
    assert seen.keys() == {1, 2}


@pytest.mark.parametrize(
    ("keys", "own"),
    [
        ({}, 1),
        ({"tasks": {"forward": [{"name": "look", "time": [1, 0], "needs": "nothing"}, {"name": "f", "time": 1}],
                    "backward": [{"name": "b", "time": 1}]}}, 2),
        ({"parameters": {"gather": {"time": 1, "keep": "always"}}, "objective": "iteration", "overlap_next": True}, 2),
        ({"parameters": {"step": {"time": 1}}, "objective": "iteration", "overlap_next": True}, 2),
        ({"times": {"forward": 1, "backward": 1, "weight": 1}}, 2),
        ({"placement": "bidirectional"}, 2),
        ({"modules": {"vision": {"placement": [1], "feeds": 1, "times": {"forward": 1, "backward": 1}}}}, 2),
        ({"modules": {"vision": {"placement": [1], "feeds": 0, "times": {"forward": 1, "backward": 1}}}}, 1),
        ({"modules": {"vision": {"placement": [0], "feeds": 1, "times": {"forward": 1, "backward": 1}}}}, 1),
        ({"sequence_chunks": 2}, 1),
    ],
)  # fmt: skip
def test_features_that_let_a_device_begin_or_end_by_itself(keys: dict[str, object], own: int) -> None:
    document: dict[str, object] = {"times": {"forward": 1, "backward": 1, "transfer": 1}, "objective": "span"}
    one = problem(2, 2, **(document | keys | ({"times": {"transfer": 1}} if "tasks" in keys else {})))
    assert one.objective == Objective.SPAN and (largest_denominator(one), denominators(one)) == (own, own)
    # What has begun is a time that is known: of two devices one is then left that may choose its own.
    assert largest_denominator(one, opened=(0, 1)) == 1 and largest_denominator(one, opened=(0,)) == own
