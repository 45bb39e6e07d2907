"""The simulator against times worked out from the definitions alone: every order of tiny problems, random ones."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from random import Random

import pytest

from pipesched.errors import BadInput, Deadlock
from pipesched.problem.passes import BW, F, Pass, Task, parse_pass
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import finer
from pipesched.schedule.metrics import measure
from pipesched.schedule.pass_table import PassTable
from pipesched.schedule.schedule import Schedule, schedule_of
from pipesched.simulation.precedence_graph import Graph
from pipesched.simulation.simulator import latest_openings, simulate, simulate_late
from pipesched.validation.validator import validate
from tests.support.daily import daily
from tests.support.in_turn import in_turn
from tests.support.makers import (
    IsFused,
    always,
    passes_of,
    problem,
    random_order,
    random_problem,
    schedule,
    shuffled,
)
from tests.support.task_brute_force import Game, arcs_of, game_of

RANDOM = {"forward": [1, 3], "backward": [2, 0], "weight": [1, 2], "fused": [4, 1], "transfer": [2, 5]}
FOUR = {key: [*values, 2, 1] for key, values in RANDOM.items()}


def check(one: Problem, orders: Schedule) -> bool:
    """The simulator says what the definitions say; whether the order runs."""
    game = game_of(one, orders)
    expected = game.starts(arcs_of(game, orders))
    if expected is None:
        with pytest.raises(Deadlock) as caught:
            simulate(one, orders)
        check_circle(game, orders, caught.value.cycle)
        return False
    assert dict(simulate(one, orders).starts) == expected
    return True


def check_circle(game: Game, orders: Schedule, cycle: tuple[str, ...]) -> None:
    """Each element stands in the order and really waits for the next."""

    def text(task: Task) -> str:
        both = (task, Task(game.blocks[task.of])) if task.of in game.blocks else (task,)
        return "&".join(map(game.problem.task_text, both))

    direct = {(text(other), text(one)) for one, other in (*game.lags, *arcs_of(game, orders))}
    assert len(set(cycle)) == len(cycle) > 0
    assert {*zip(cycle, [*cycle[1:], cycle[0]], strict=True)} <= direct


def every_order(one: Problem, is_fused: IsFused) -> Iterator[Schedule]:
    return (schedule_of(orders) for orders in product(*(permutations(held) for held in passes_of(one, is_fused))))


@pytest.mark.parametrize(
    ("one", "is_fused"),
    [
        pytest.param(problem(1, 2), always, id="one device"),
        pytest.param(
            problem(1, 1, placement=[0, 0], times=RANDOM), lambda s, j: False, id="one device, two stages, split"
        ),
        pytest.param(problem(2, 1, times=RANDOM), lambda s, j: False, id="two devices, split"),
        pytest.param(problem(2, 2, times=RANDOM), always, id="two devices, fused"),
        pytest.param(problem(2, 1, placement="v-shape", times=FOUR), always, id="v-shape"),
        pytest.param(problem(2, 1, placement="interleaved", chunks=2, times=FOUR), always, id="interleaved"),
        pytest.param(problem(2, 2, placement="bidirectional", times=FOUR), always, id="bidirectional"),
        pytest.param(problem(3, 1, times={"forward": 1, "backward": 0}), lambda s, j: True, id="three devices"),
        pytest.param(problem(2, 1, times=RANDOM), lambda s, j: s == 1, id="mixed"),
    ],
)
def test_every_order(one: Problem, is_fused: IsFused) -> None:
    results = [check(one, orders) for orders in every_order(one, is_fused)]
    assert any(results)
    assert not all(results)


@in_turn("seed", daily(range(150), 3))
def test_random_orders_that_run(seed: int) -> None:
    rng = Random(seed)
    one = random_problem(rng)
    assert check(one, random_order(one, rng, pairs=0.7))


@in_turn("seed", daily(range(100), 2))
def test_random_orders_that_mostly_do_not(seed: int) -> None:
    rng = Random(seed)
    one = random_problem(rng)
    check(one, shuffled(one, rng, pairs=0.7))


def test_the_circle_of_a_deadlock_is_named() -> None:
    with pytest.raises(Deadlock) as caught:
        simulate(problem(1, 1), schedule("BW0.0 F0.0"))
    assert set(caught.value.cycle) == {"BW0.0", "F0.0"}
    assert str(caught.value) in (  # a circle may be told from any of its elements on
        "deadlock: BW0.0 waits for F0.0 waits for BW0.0",
        "deadlock: F0.0 waits for BW0.0 waits for F0.0",
    )


def test_a_block_of_a_micro_batch_with_itself_waits_for_itself() -> None:
    with pytest.raises(Deadlock) as caught:
        simulate(problem(1, 1, times={"forward": 1, "backward": 1, "overlapped": 1}), schedule("F0.0&BW0.0"))
    assert caught.value.cycle == ("F0.0&BW0.0",)


FULL_ROWS = ("F0.0 B0.0 W0.0 F0.1 BW0.1", "F1.0 BW1.0 F1.1 B1.1 W1.1")


@pytest.mark.parametrize("gone", ["F0.0", "B0.0", "F0.1", "F1.0", "F1.1", "B1.1"])
def test_a_missing_pass_that_another_needs(gone: str) -> None:
    rows = (" ".join(word for word in row.split() if word != gone) for row in FULL_ROWS)
    with pytest.raises(BadInput, match=f"needs {gone}, which the schedule does not hold"):
        simulate(problem(2, 2), schedule(*rows))


@in_turn("twice", " ".join(FULL_ROWS).split())
@in_turn("device", [0, 1])
def test_a_pass_that_stands_twice(twice: str, device: int) -> None:
    rows = list(FULL_ROWS)
    rows[device] += f" {twice}"
    with pytest.raises(BadInput, match=f"{twice} appears twice in the schedule"):
        simulate(problem(2, 2), schedule(*rows))


@in_turn("seed", range(60))
def test_not_before_keeps_devices_idle(seed: int) -> None:
    rng = Random(seed)
    one = random_problem(rng)
    orders = random_order(one, rng, pairs=0.5)
    idle = [rng.randint(0, 6) for _ in range(one.devices)]
    game = game_of(one, orders)
    assert dict(simulate(one, orders, idle).starts) == game.starts(arcs_of(game, orders), idle)


def ends(one: Problem, orders: Schedule, idle: list[int]) -> dict[tuple[int, str], int]:
    """When each stream of each device has done its last job."""
    game, starts = game_of(one, orders), simulate(one, orders, idle).starts
    last: dict[tuple[int, str], int] = {}
    for task, stream in game.stream.items():
        last[stream] = max(last.get(stream, 0), starts[task] + game.ticks[task])
    return last


@in_turn("seed", range(60))
def test_latest_openings(seed: int) -> None:
    rng = Random(seed)
    one = random_problem(rng)
    orders = random_order(one, rng, pairs=0.5)
    openings = latest_openings(Graph(one, orders))
    soon = ends(one, orders, [0] * one.devices)
    assert ends(one, orders, openings) == soon  # all together
    for device, order in enumerate(orders.orders):
        if order:
            later = [0] * one.devices
            later[device] = openings[device] + 1
            assert ends(one, orders, later) != soon


def test_a_hundred_thousand_passes() -> None:
    devices, microbatches = 10, 5000
    one = problem(devices, microbatches, times={"forward": 1, "backward": 2})
    kinds = (F, BW)
    orders = [[Pass(kind, s, j) for kind in kinds for j in range(microbatches)] for s in range(devices)]
    timeline = simulate(one, schedule_of(orders))
    assert len(timeline.starts) == 100_000
    assert timeline.end(parse_pass("BW0.4999")) == 3 * (microbatches + devices - 1)


@in_turn("seed", range(40))
def test_ticks_beyond_64_bits_stay_exact(seed: int) -> None:
    rng = Random(seed)
    one = random_problem(rng)
    orders = random_order(one, rng, pairs=0.5)
    coarse, fine = simulate_late(one, orders), simulate_late(finer(one, 10**24), orders)
    assert dict(fine.starts) == {task: tick * 10**24 for task, tick in coarse.starts.items()}
    assert measure(fine).span_ticks == measure(coarse).span_ticks * 10**24
    assert measure(fine).work_ticks == tuple(ticks * 10**24 for ticks in measure(coarse).work_ticks)
    assert validate(fine) == []
    task = max(task for task in fine.starts if fine.starts[task])
    assert validate(replace(fine, starts=dict(fine.starts) | {task: -1})) != []


@pytest.mark.parametrize("seed", range(40))
def test_compiled_loops_over_arrays_give_what_lists_give(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long schedules are timed by the same functions, compiled."""
    rng = Random(seed)
    one = random_problem(rng)
    orders = random_order(one, rng, pairs=0.3) if seed % 4 else shuffled(one, rng, pairs=0.3)
    idle = [rng.randint(0, 9) for _ in range(one.devices)]

    def outcome() -> object:
        try:
            return dict(simulate(one, orders, idle).starts), latest_openings(Graph(one, orders))
        except Deadlock as stuck:
            return stuck.args

    plain = outcome()
    monkeypatch.setattr("pipesched.simulation.precedence_graph.MANY", 0)
    assert Graph(one, orders).long
    assert outcome() == plain


def test_a_long_schedule_of_ticks_whose_sum_leaves_64_bits_is_timed_with_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipesched.simulation.precedence_graph.MANY", 0)
    huge = finer(problem(1, 3, times={"forward": 1, "backward": 1}), 2**59)
    timeline = simulate(huge, schedule("F0.0 BW0.0 F0.1 BW0.1 F0.2 BW0.2"))
    assert timeline.end(parse_pass("BW0.2")) == 6 * 2**59
    assert validate(timeline) == []


@in_turn("seed", range(60))
def test_a_schedule_made_of_columns_is_the_one_they_came_from(seed: int) -> None:
    rng = Random(seed)
    one = random_problem(rng)
    orders = random_order(one, rng, pairs=0.5)
    columns = orders.columns
    arrays = columns.device, columns.slot, columns.microbatch, columns.pass_type
    made = Schedule(PassTable(columns.devices, *arrays, columns.pass_types), orders.name)
    assert validate(simulate(one, made)) == validate(simulate(one, orders))
    assert simulate(one, made).starts == simulate(one, orders).starts
    assert made == orders
    assert pickle.loads(pickle.dumps(made)) == orders
    assert not hasattr(made, "order")
