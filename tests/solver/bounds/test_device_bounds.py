"""Bounds of a device by hand, against every order and in the check: cool-down, head and tail in order, longer blocks."""

from __future__ import annotations

import pytest

from benchmarks.proofs.unequal_problems import optimum_of
from pipesched import problem_from
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import ReturnTo
from solver.bounds.analytic import cool_down as module
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.analytic.cool_down import cool_down
from solver.bounds.analytic.critical_paths import blocks_outlast_passes
from tests.support.certified import assert_proved_and_no_more, verdict
from tests.support.makers import problem as linear

TIMES = {"forward": 10, "backward": 10, "weight": 5}


def interleaved(objective: str = "span", **more: object) -> Problem:
    asked = {"devices": 2, "microbatches": 4, "times": TIMES, "objective": objective, "memory": {"capacity": 4}}
    return problem_from(asked | {"placement": "interleaved", "chunks": 2} | more)


def on_device(problem: Problem, device: int) -> list[Certificate]:
    return [one for one in cool_down(problem, problem.objective) if one.device == device]


@pytest.mark.parametrize("objective", ("span", "makespan"))
def test_by_hand(objective: str) -> None:
    """Device 1 has stages 1 and 3, 200 of work, and begins 10 after device 0.

    With k gradients at stage 1 to come, a of them also at stage 3, memory for 4 leaves 20 + 10 (k + a). From there pass
    35 + 10 a for the way back, and 10 + 15 (k + a) until device 0 has run its backwards: 45 with one of each.
    """
    asked = interleaved(objective)
    (found,) = on_device(asked, 1)
    assert found.value_ticks * asked.tick == 10 + 200 - 40 + 45
    assert found.evidence == ReturnTo(1, 0)
    assert_proved_and_no_more(asked, [found])


def test_nothing_is_said_of_blocks_of_two_chains_and_of_too_many_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = interleaved(times={**TIMES, "overlapped": 20})
    both_ways = linear(2, 4, placement="bidirectional", objective="span", memory={"capacity": 2})
    assert not cool_down(blocks, Objective.SPAN)
    assert not cool_down(both_ways, Objective.SPAN)
    (found,) = on_device(interleaved(), 1)
    assert verdict(blocks, found) is Verdict.REFUSED
    assert verdict(both_ways, found) is Verdict.REFUSED
    # Four pairs of numbers fit into memory: (1, 1), (2, 1), (2, 2) and (3, 1).
    monkeypatch.setattr(module, "_PARAMS", module.CoolDownParams(most_pairs=4))
    assert on_device(interleaved(), 1) == [found]
    monkeypatch.setattr(module, "_PARAMS", module.CoolDownParams(most_pairs=3))
    assert not on_device(interleaved(), 1)


def test_the_check_gives_up_where_there_are_too_many_numbers() -> None:
    (found,) = on_device(interleaved(), 1)
    many = interleaved(microbatches=64, memory={"capacity": 128})
    assert verdict(many, found) is Verdict.REFUSED
    assert not on_device(many, 1)


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
    free = problem("free", [2, 0.5, 3], objective)
    assert on_last_device(free, "head and tail").value_ticks * free.tick == 58
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


@pytest.mark.parametrize(("block", "outlasts"), [(4, False), (5, True), (8, True)])
def test_a_block_outlasts_both_of_its_passes(block: int, outlasts: bool) -> None:
    """A forward of 2 and a full backward of 5 on every device."""
    assert blocks_outlast_passes(linear(2, 2, times={"forward": 2, "backward": 5, "overlapped": block})) is outlasts
    assert blocks_outlast_passes(linear(2, 2, times={"forward": 5, "backward": 2, "overlapped": block})) is outlasts


def test_without_blocks_there_is_nothing_to_outlast() -> None:
    assert blocks_outlast_passes(linear(2, 2, times={"forward": 2, "backward": 5}))
