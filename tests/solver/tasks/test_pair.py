"""Pairs of a forward and a backward: proved optima of DeepSeek's trace, and what the command says."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from commands import pair as command
from commands.main import main
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.problem import placement
from pipesched.problem.passes import BW, F
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import COMPUTE, Stage, TaskSpec
from pipesched.results.solution import Status
from solver.limits import Limits
from solver.tasks.pair import best_pair
from tests.support.counted import counted
from tests.support.expert_parallel import BACKWARD, FORWARD, WEIGHT, layers, trace
from tests.support.task_brute_force import Game, tiny_tasks

SURE = counted(20.0)


@pytest.mark.parametrize(
    ("transfers", "best"), [(Fraction(1), 126447), (Fraction(3, 2), 128345), (Fraction(2), 160929)]
)
def test_four_layers_of_the_trace_hide_what_can_be_hidden(transfers: Fraction, best: int) -> None:
    """At their own length all transfers are hidden behind the computation; at twice it they are the bottleneck."""
    found = best_pair(trace(transfers), 0, 0, SURE)
    assert (found.status, found.value, found.lower_bound) == (Status.OPTIMAL, *2 * [best * found.problem.tick])
    sent = sum(int(ticks * transfers) for layer in FORWARD for ticks in layer[1::2])
    sent += sum(int(ticks * transfers) for layer in BACKWARD for ticks in layer[::2])
    assert found.in_turn == (126447 + sent) * found.problem.tick


@pytest.mark.parametrize(("forward", "backward", "best"), [(0, 0, 31797), (0, 1, 31601), (2, 1, 32258), (3, 3, 30806)])
def test_a_single_layer_hides_all_its_transfers(forward: int, backward: int, best: int) -> None:
    """The computation of both alone takes that long."""
    ways = layers([FORWARD[forward]], [BACKWARD[backward]], [WEIGHT[backward]])
    found = best_pair(Problem(placement.linear(1), 1, (ways,)), 0, 0, SURE)
    assert (found.value, found.lower_bound) == (best, best)
    assert found.value == sum(FORWARD[forward][::2]) + sum(BACKWARD[backward][1::2]) + sum(WEIGHT[backward])


@pytest.mark.parametrize("seed", range(12))
def test_no_order_of_the_streams_is_shorter(seed: int) -> None:
    """By every order of every stream, and every mode."""
    problem = tiny_tasks(Random(seed))
    found = best_pair(problem, 0, 0, SURE)
    assert found.status is Status.OPTIMAL
    assert found.value == min(_every_order(found.problem, fused) for fused in _modes(found.problem))


def _modes(problem: Problem) -> tuple[bool, ...]:
    return (False, True) if problem.splittable else (True,)


def _every_order(problem: Problem, fused: bool) -> int:
    """The shortest time of the pair alone: all that is not of it takes no time and comes before or behind."""
    game = Game(problem, frozenset((s, j) for s in range(problem.placement.stages) for j in range(2) if fused))
    last = problem.placement.stages - 1
    own = [
        task
        for task in game.ticks
        if (task.of.kind is F and task.of[1:] == (0, 0)) or (task.of.kind is not F and task.of[1:] == (last, 1))
    ]
    game.ticks = {task: game.ticks[task] for task in own}
    game.stream = {task: game.stream[task] for task in own}
    game.lags = {pair: lag for pair, lag in game.lags.items() if set(pair) <= set(own)}
    best = None
    for orders in game.orders():
        turns = frozenset(pair for order in orders.values() for pair in pairwise(order))
        value = game.value(turns, Objective.MAKESPAN)
        if value is not None and (best is None or value < best):
            best = value
    assert best is not None
    return int(best)


def test_two_stages_of_one_device() -> None:
    """The forward of one, the backward of the other: the forward's exchange runs beside the backward."""
    sends = Stage(4, 6, None, 6, tasks=((F, (TaskSpec(COMPUTE, 1), TaskSpec("ep", 3))), (BW, (TaskSpec(COMPUTE, 6),))))
    plain = Stage(2, 5, None, 5)
    problem = Problem(placement.explicit(2, [0, 1, 0]), 4, (sends, plain, plain))
    found = best_pair(problem, 0, 2, SURE)
    assert (found.value, found.in_turn) == (6, 9)
    assert best_pair(problem, 2, 0, SURE).value == 8
    with pytest.raises(BadInput, match="--backward-stage: found 1, on device 1, with --forward-stage 0, on device 0"):
        best_pair(problem, 0, 1)
    with pytest.raises(BadInput, match="--forward-stage: found 3; allowed: a stage from 0 to 2"):
        best_pair(problem, 3, 0)


def test_a_pair_of_unequal_micro_batches_has_no_order_of_data() -> None:
    """In the file the order is fixed; the two passes of the pair are of different moments of an iteration."""
    problem = tiny_tasks(Random(1))
    fixed = replace(problem, walks=replace(problem.walks, queues=tuple(range(problem.placement.stages))))
    assert best_pair(fixed, 0, 0, SURE).value == best_pair(problem, 0, 0, SURE).value


@pytest.mark.parametrize(
    "keys",
    [
        {"pipelines": {"count": 2, "lost": [[0, 1]]}},
        {"placement": [0, 1, 0, 1], "chains": [{"stages": [0, 1], "microbatches": 1}, {"stages": [2, 3], "microbatches": 1}]},
        {"sequence_chunks": 2, "memory": {"kept_for_later": 1}},
        {"modules": {"vision": {"placement": [0], "times": {"forward": 1, "backward": 1}}}},
        {"modules": {"words": {"placement": "shared", "feeds": 0, "times": {"forward": 1, "backward": 1}}}},
        {"streams": ["compute", "comm"],
         "times": {"forward": 2, "backward": 3, "transfer": {"time": 1, "on": "comm", "both": True}}},
    ],
)  # fmt: skip
def test_a_pair_belongs_to_no_chain_piece_or_module(keys: dict[str, object]) -> None:
    """A stage by itself has none of what ties it to others; each ended in a traceback or a note of a defect."""
    one = problem_from({"devices": 2, "microbatches": 2, "times": {"forward": 2, "backward": 3}} | keys)
    found = best_pair(one, 0, 0, Limits(seconds=60, workers=1))
    assert (found.value, found.status) == (5, Status.OPTIMAL)


def test_a_pair_runs_without_collectives_of_an_iteration() -> None:
    one = problem_from(
        {"devices": 2, "microbatches": 2, "times": {"forward": 2, "backward": 3}, "streams": ["compute", "dp"]}
        | {"parameters": {"reduce": {"time": 3, "on": "dp"}, "step": {"time": 1}}, "objective": "iteration"}
    )
    assert best_pair(one, 0, 0, SURE).value == 5


def test_the_command_says_value_bound_and_orders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "problem_of", lambda *_: trace())
    options = ["pair", "trace.yaml", "--workers", "1"]
    assert main([*options, "--json", "-o", str(tmp_path / "pair.png")]) == 0
    found = json.loads(capsys.readouterr().out)
    keys = ("value", "lower_bound", "status", "in_turn")
    assert [found[key] for key in keys] == [126.447, 126.447, "optimal", 206.887]
    assert {stream: len(tasks) for stream, tasks in found["orders"].items()} == {"compute": 24, "comm": 16}
    named = {kind: [t for t in found["orders"]["compute"] if t.startswith(kind)] for kind in ("F:", "B:", "W:")}
    assert named["F:"] == [f"F:{name}{n}" for n in range(4) for name in ("attn", "mlp")]
    assert named["B:"] == [f"B:{name}{n}" for n in range(4) for name in ("mlp", "attn")]
    assert sorted(named["W:"]) == sorted(f"W:{name}-w{n}" for n in range(4) for name in ("attn", "mlp"))
    assert (tmp_path / "pair.png").stat().st_size > 1000
    assert main(options) == 0
    assert "optimal: 126.447 ms" in capsys.readouterr().out
    assert main([*options, "--forward-stage", "7"]) == 2
    assert main([*options, "-o", str(tmp_path / "pair.gif")]) == 2


def test_times_too_long_for_cp_sat_have_the_dispatched_order() -> None:
    """The horizon is more than CP-SAT counts, in which nothing can be searched."""
    ways = layers([[2**49 + ticks for ticks in FORWARD[0]]], [BACKWARD[0]], [WEIGHT[0]])
    found = best_pair(Problem(placement.linear(1), 1, (ways,)), 0, 0, SURE)
    assert 2**50 < found.lower_bound <= found.value <= found.in_turn
