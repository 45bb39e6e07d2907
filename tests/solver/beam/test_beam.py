"""Beam search with overlapped blocks: valid schedules of the value it says, and blocks where these gain."""

from __future__ import annotations

from random import Random
from threading import Event

import numpy as np
import pytest

from pipesched.errors import is_defect
from pipesched.files.problem_file import problem_from
from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.problem.problem import Problem
from pipesched.schedule.rescale import value_of
from pipesched.validation.validator import validate
from solver.beam.completion import completion_bounds, rank_by_completion
from solver.beam.nodes import offsets, take
from solver.beam.openings import openings
from solver.beam.ranks import Preference
from solver.beam.schedules import schedule_of_moves
from solver.beam.search import best_order, ended
from solver.beam.tables import covers, tables_of
from solver.construction.timing import best_times
from solver.solve import solve
from tests.support.counted import counted
from tests.support.in_turn import in_turn
from tests.support.makers import problem

_PREFERS = Preference(10.0, 1.0, 0.0, 1.5)


def with_blocks(seed: int, objective: str = "makespan") -> Problem:
    """One chain or two, B and W or full backwards, unequal stages, hardly enough memory or more."""
    random = Random(seed)
    devices, placement = random.choice((2, 3)), random.choice(("linear", "v-shape", "bidirectional"))
    devices = 2 if placement == "bidirectional" else devices
    stages = devices * (1 if placement == "linear" else 2)
    shared = devices if placement == "bidirectional" else stages  # stages of two chains are mirror images

    def some(low: int, high: int) -> list[int]:
        return [random.randint(low, high) for _ in range(shared)]

    times: dict[str, object] = {"forward": some(5, 9), "backward": some(5, 9), "transfer": random.randint(0, 2)}
    if random.random() < 0.6:
        times["weight"] = some(3, 6)
    times["overlapped"] = some(12, 18)
    memory = {"capacity": random.randint(2, 4)}
    return problem(devices, 4, times=times, placement=placement, memory=memory, objective=objective)


@in_turn("objective", ["makespan", "span"])
@in_turn("seed", range(12))
def test_a_schedule_is_valid_and_takes_what_the_order_says(seed: int, objective: str) -> None:
    given = with_blocks(seed, objective)
    assert covers(given)
    for opens in openings(given):
        tables = tables_of(given, opens)
        found = ended(best_order(tables, _PREFERS, 60, 2))
        assert found is not None, "an order that ends, with memory for two"
        timeline = best_times(given, schedule_of_moves(given, tables, found.moves))
        assert validate(timeline) == []
        assert value_of(given, timeline) <= found.value


@pytest.mark.parametrize("seed", range(6))
def test_weight_passes_without_duration_are_part_of_full_backwards(seed: int) -> None:
    random = Random(seed)
    weight = [random.choice((0, 3, 5)) for _ in range(3)]
    weight[random.randrange(3)] = 0
    times = {"forward": 5, "backward": [random.randint(4, 8) for _ in range(3)], "weight": weight}
    given = problem(3, 4, times=times, memory={"capacity": random.randint(2, 4)})
    found = ended(best_order(tables_of(given), _PREFERS, 60, 2))
    assert found is not None
    timeline = best_times(given, schedule_of_moves(given, tables_of(given), found.moves))
    assert validate(timeline) == []
    assert value_of(given, timeline) <= found.value


def test_of_a_span_one_chain_may_wait_for_the_other() -> None:
    """CP-SAT proves 68 ticks for 6 devices both ways; with both chains from the start on the best order takes 78."""
    times = {"forward": 10, "backward": 20, "transfer": 5}
    both = problem(6, 4, times=times, placement="bidirectional", memory={"capacity": 2}, objective="span")
    found = [
        ended(best_order(tables_of(both, opens), Preference(10.0, 1.0, 0.0, 1.5), 100, 2)) for opens in openings(both)
    ]
    assert [None if one is None else one.value for one in found] == [78, 68]


def test_more_nodes_of_a_layer_find_shorter_orders() -> None:
    """CP-SAT proves 204, 102 ticks, for 4 devices both ways."""
    times = {"forward": 10, "backward": 10, "weight": 10, "overlapped": 24}
    both = problem(4, 6, times=times, placement="bidirectional", memory={"capacity": 3}, objective="makespan")
    tables = tables_of(both)
    narrow, wide = (ended(best_order(tables, _PREFERS._replace(microbatches=0.1), width, 4)) for width in (1, 1000))
    assert narrow is not None
    assert wide is not None
    assert 102 <= wide.value <= 105 < narrow.value
    assert any(mate >= 0 for _, mate, _ in wide.moves)


@pytest.mark.parametrize(("chunks", "memory", "value"), [(3, 6, 150), (4, 8, 189)])
def test_forwards_are_put_off_that_would_hold_memory_too_soon(chunks: int, memory: int, value: int) -> None:
    """CP-SAT and a diagram prove both values; active schedules, which never wait with what fits, end at 163 and 202."""
    given = problem(
        4,
        7,
        times={"forward": 2, "backward": 2, "weight": 1},
        placement="interleaved",
        chunks=chunks,
        memory={"capacity": memory},
        objective="makespan",
    )
    found = ended(best_order(tables_of(given), Preference(2.0, 0.0, 0.1, 1.5), 1000, 2))
    assert found is not None
    assert value <= found.value <= 1.02 * value


@in_turn("seed", range(12))
def test_no_order_ends_before_what_must_follow_it(seed: int) -> None:
    """Every part of an order that ends at a value stays where that is a tick more, at any layer."""
    given = with_blocks(seed)
    tables, below = tables_of(given), completion_bounds(given, Event())
    if below is None:
        assert len(given.placement.chains) == 2
        return
    found = ended(best_order(tables, _PREFERS, 60, 2))
    assert found is not None
    row = np.zeros((1, offsets(tables)[-1]), np.int64)
    for done, move in enumerate(found.moves):
        take(row[0], *move, tables)
        for value, stays in ((found.value + 1, True), (0, False)):
            ranks, passed = np.zeros(1), int(row[0, : len(tables.device)].sum())
            moves = np.array([[*move]], np.int64)
            layer = passed - (2 if move[1] >= 0 else 1)
            rank_by_completion(row, moves, ranks, layer, tables, below._replace(value=value))
            assert passed == len(below.layers) or (ranks[0] < np.inf) == stays, f"after {done} moves"


def test_orders_that_cannot_end_below_the_best_make_room_for_better_ones() -> None:
    """With as many nodes 4 devices come to a shorter order, and to none below the least of all."""
    times = {"forward": [9, 10, 11, 9, 11, 9, 10, 11], "backward": 10, "weight": 9, "overlapped": 23}
    memory = {"capacity": 5}
    given = problem(4, 6, times=times, placement="v-shape", memory=memory, objective="makespan")
    tables = tables_of(given)
    below = completion_bounds(given, Event())
    assert below is not None
    prefers, plain = _PREFERS._replace(longest=0.0), ended(best_order(tables, _PREFERS, 100, 2))
    guided = ended(best_order(tables, prefers, 100, 2, below))
    assert plain is not None
    assert guided is not None
    assert guided.value < plain.value
    again = ended(best_order(tables, prefers, 100, 2, below._replace(value=guided.value)))
    assert again is None or again.value < guided.value
    assert ended(best_order(tables, prefers, 100, 2, below._replace(value=guided.value * 9 // 10))) is None


def test_chains_of_unequal_microbatches_whose_order_is_fixed_have_no_beam() -> None:
    """Found without this: F1.1 before F0.0."""
    document = {"devices": 2, "microbatches": 4, "times": {"forward": 2, "backward": [2, 4]}}
    unequal = problem_from(document | {"microbatch_scale": [0.5, 2, 0.5, 1]})
    chains = without_scale(unequal)
    assert not covers(chains)
    best, found = solve(unequal, counted(2)), solve(chains, counted(2))
    assert found.value_ticks == best.value_ticks is not None
    assert not any(map(is_defect, found.notes))
    assert covers(without_scale(problem_from(document | {"microbatch_scale": [1, 1, 1, 1]})))
