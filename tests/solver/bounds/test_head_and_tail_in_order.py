"""Head and tail of micro-batches that keep their order: by hand, against every order, and in the check."""

from __future__ import annotations

import pytest

from benchmarks.proofs.unequal_problems import optimum_of
from pipesched import problem_from
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.catalogue import certificates
from tests.support.certified import assert_proved_and_no_more, verdict

KIND = "head and tail in order"


def problem(order: str, scale: list[float], objective: str = "makespan") -> Problem:
    times = {"forward": [2, 4], "backward": [2, 6], "transfer": 1}
    factors = {"microbatch_scale": scale, "microbatch_order": order}
    return problem_from({"devices": 2, "microbatches": 3, "times": times, "objective": objective} | factors)


def on_last_device(asked: Problem, kind: str) -> Certificate:
    return next(one for one in certificates(asked, asked.objective) if one.kind == kind and one.device == 1)


@pytest.mark.parametrize(
    ("objective", "value"),
    # The first reaches device 1 after 2 (2 + 1) = 6; work there is 10 (2 + 0.5 + 3) = 55; the last takes 3 (1 + 2) back.
    # The span of device 0 has both ways too.
    [("makespan", 70), ("span", 70)],
)
def test_the_ways_of_the_first_and_of_the_last(objective: str, value: int) -> None:
    asked = problem("fixed", [2, 0.5, 3], objective)
    found = on_last_device(asked, KIND)
    assert found.value_ticks * asked.tick == value
    # Any of them may come first and last where the order is not known: 1.5 and 1.5 for the smallest.
    assert on_last_device(asked, "head and tail").value_ticks * asked.tick == 58
    best = optimum_of(asked)
    assert best is not None
    assert found.value_ticks <= best


def test_the_check_knows_the_order_and_no_more() -> None:
    asked = problem("fixed", [2, 0.5, 3])
    found = on_last_device(asked, KIND)
    assert_proved_and_no_more(asked, [found])
    # The same claim of the problem whose micro-batches may pass each other.
    assert verdict(problem("free", [2, 0.5, 3]), found) is Verdict.REFUSED


def test_nothing_is_said_where_micro_batches_may_pass_each_other() -> None:
    free = problem("free", [2, 0.5, 3])
    assert KIND not in {one.kind for one in certificates(free, free.objective)}
