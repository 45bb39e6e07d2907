"""What runs for parameters behind all passes: only where these cannot end later, so that no bound is above the optimum."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.checking.relaxed.parameters import around_passes
from pipesched.problem import placement
from pipesched.problem.features.device_resources import DeviceResources
from pipesched.problem.passes import BW, REDUCE, B, F, W
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.relaxed.parameter_times import least_parameter_ticks
from pipesched.problem.stage import Once, Stage, TaskSpec
from solver.bounds.saving.certificates import certificates
from tests.support.rows_of_tasks import tiny_mirrored
from tests.support.task_brute_force import optimum, tiny_reductions, with_parameters

NOTHING, COMM = TaskSpec("compute", 0), TaskSpec("comm", 1)


def weights_before_the_end(objective: Objective) -> Problem:
    """While the last task of B runs, W has ended, and the reduction runs beside it."""
    tasks = (
        (F, (NOTHING,)),
        (B, (NOTHING, COMM)),
        (W, (NOTHING._replace(after=0),)),
        (BW, (NOTHING, NOTHING, COMM)),
    )
    stage = Stage(0, 0, 0, 0, tasks=tasks, once=(Once(REDUCE, TaskSpec("compute", 1)),))
    return Problem(placement.linear(1), 1, (stage,), objective=objective)


def gradients_on_their_way() -> Problem:
    """Two chains end on one device, which sends the last gradient to another while the reduction runs beside it."""
    once = (Once(REDUCE, TaskSpec("dp", 1)),)
    first, last = Stage(0, 0, None, 0, 1, once=once), Stage(0, 2, None, 2, once=once)
    where = replace(placement.explicit(3, [1, 0, 2, 0]), chains=((0, 1), (2, 3)))
    return Problem(
        where, 2, (first, last) * 2, objective=Objective.SPAN, resources=DeviceResources(transfer_stream="send")
    )


@pytest.mark.parametrize(
    ("one", "best"),
    [
        (weights_before_the_end(Objective.ITERATION), 1),
        (weights_before_the_end(Objective.SPAN), 1),
        (gradients_on_their_way(), 5),
    ],
)
def test_reduction_and_step_may_end_before_passes_do(one: Problem, best: int) -> None:
    assert optimum(one, one.objective) == best
    found = certificates(one, one.objective)
    assert found[0].value_ticks == best
    for each in found:
        assert check_bound(one, each).verdict is Verdict.VERIFIED
        assert check_bound(one, replace(each, value_ticks=best + 1)).verdict is Verdict.REFUSED


def test_the_check_finds_as_much_besides_as_the_solver() -> None:
    random, some = Random(3), 0
    for _ in range(400):
        one = tiny_reductions(random) if random.random() < 0.5 else with_parameters(random, tiny_mirrored(random))
        found = least_parameter_ticks(one)
        assert around_passes(one) == found, (one, one.stages)
        some += found > 0
    assert some > 100
