"""Published schedules of passes made of tasks: pairs interleave as their sources do, on any problem without deadlock."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from heuristics.building.task_interleaving import Weights, interleaved
from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.errors import DoesNotApply
from pipesched.problem import placement
from pipesched.problem.blocks import Blocks
from pipesched.problem.features.device_resources import DeviceResources
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import COMPUTE, Stage
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from tests.support.expert_parallel import layers, mean_layers

INTERLEAVED = ("1f1b-overlap", "interleaved-1f1b-overlap", "kimi-k2", "dualpipe", "dualpipe-v")
WHERE = (
    placement.linear(3),
    placement.interleaved(2, 2),
    placement.interleaved(3, 2),
    placement.v_shape(2),
    placement.bidirectional(4),
)


def uneven(random: Random) -> Stage:
    """One or two layers of unequal times, some of them zero."""
    count = random.randint(1, 2)
    forward, backward = ([[random.randint(0, 6) for _ in range(4)] for _ in range(count)] for _ in range(2))
    return layers(forward, backward, [[random.randint(0, 3) for _ in range(2)] for _ in range(count)], 1)


@pytest.mark.parametrize("heuristic", list(HEURISTICS), ids=lambda h: h.name)
def test_valid_in_the_memory_that_its_order_of_passes_needs(heuristic: Heuristic) -> None:
    """Whatever the tasks take: those of a pair interleave, and what takes memory still waits for what gives it back."""
    random = Random(heuristic.name)
    for where in WHERE:
        stages = tuple(uneven(random) for _ in range(where.stages))
        occupied = random.choice((None, "comm"))
        problem = Problem(where, 2 * where.devices, stages, resources=DeviceResources(transfer_stream=occupied))
        try:
            schedule = heuristic.order(problem)
        except DoesNotApply:
            continue
        timeline = simulate(problem, schedule)
        assert validate(timeline) == []
        if heuristic.name in INTERLEAVED:
            limited = problem.with_room(measure(simulate(problem, Schedule(schedule.orders))).peak_quanta)
            assert validate(simulate(limited, heuristic.order(limited))) == []


def paired(weights: Weights, together: bool = False) -> Schedule:
    """Two pairs of a stage of two layers on one device, between a forward and a backward alone."""
    stage = layers([(1, 1, 1, 1)] * 2, [(1, 1, 1, 1)] * 2, [(1, 1)] * 2)
    problem = Problem(placement.linear(1), 3, (stage,))
    slots = ((Pass(F, 0, 0),), *((Pass(F, 0, j + 1), Pass(BW, 0, j)) for j in range(2)), (Pass(BW, 0, 2),))
    return interleaved(problem, Schedule((slots,), "paired"), weights, together)


def named(schedule: Schedule, stream: str) -> list[str]:
    """The tasks of a stream's first pair by pass and name, in their order."""
    names = {F: "attn dispatch mlp combine", B: "combine mlp dispatch attn", W: "mlp-w attn-w"}
    tasks = schedule.task_orders[Resource(0, stream)]
    here = [
        t for t in tasks if (t.of.kind is F and t.of.microbatch == 1) or (t.of.kind in (B, W) and t.of.microbatch == 0)
    ]
    return [f"{t.of.kind}:{(names[t.of.kind].split() * 2)[t.part]}" for t in here]


def test_a_pair_in_the_order_of_deepseeks_trace() -> None:
    found = paired(Weights.AFTER_THEIR_TASK)
    assert named(found, COMPUTE) == ["F:attn", "B:mlp", "W:mlp-w", "F:mlp", "B:attn", "W:attn-w"] * 2
    assert named(found, "comm") == ["B:combine", "F:dispatch", "B:dispatch", "F:combine"] * 2
    assert found.waits == ()


def test_kimi_k2_runs_weight_gradients_behind_the_backward() -> None:
    found = paired(Weights.LAST)
    assert named(found, COMPUTE) == ["F:attn", "B:mlp", "F:mlp", "B:attn"] * 2 + ["W:mlp-w", "W:attn-w"] * 2


def test_megatrons_pairs_end_together() -> None:
    """Computation goes on when the last combine of the pair's forward is done."""
    found = paired(Weights.AFTER_THEIR_TASK, together=True)
    assert [(wait.before.of, wait.before.part, wait.after.of) for wait in found.waits] == [
        (Pass(F, 0, 1), 7, Pass(F, 0, 2)),
        (Pass(F, 0, 2), 7, Pass(BW, 0, 2)),
    ]


def test_passes_of_one_task_and_blocks_stay_as_they_are() -> None:
    slots = ((Pass(F, 0, 0),), (Pass(F, 0, 1), Pass(BW, 0, 0)), (Pass(BW, 0, 1),))
    schedule = Schedule((slots,), "paired")
    plain = Problem(placement.linear(1), 2, (Stage(1, 1, 1, 2),))
    assert interleaved(plain, schedule) is schedule
    (stage,) = mean_layers(placement.linear(1), 2).stages
    blocks = Problem(placement.linear(1), 2, (replace(stage, blocks=Blocks(stage.ticks(BW))),))
    assert interleaved(blocks, schedule) is schedule


@pytest.mark.parametrize("name", ("1f1b-overlap", "dualpipe", "kimi-k2"))
def test_pairs_hide_communication(name: str) -> None:
    """Against the same passes in turn, each as a whole."""
    where = {"1f1b-overlap": placement.linear(2), "dualpipe": placement.bidirectional(2)}
    problem = mean_layers(where.get(name, placement.interleaved(2, 2)), 8)
    schedule = HEURISTICS[name].order(problem)
    together, in_turn = (
        measure(simulate(problem, one)).makespan_ticks for one in (schedule, Schedule(schedule.orders))
    )
    assert together < in_turn
