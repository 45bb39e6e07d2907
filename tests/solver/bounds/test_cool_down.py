"""Cool-down: by hand, above all other bounds in words, nothing where it does not hold, and in the check."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipesched import problem_from
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OnDevice, ReturnTo
from solver.bounds.analytic import cool_down as module
from solver.bounds.analytic.cool_down import cool_down
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
    monkeypatch.setattr(module, "_MOST_PAIRS", 4)
    assert on_device(interleaved(), 1) == [found]
    monkeypatch.setattr(module, "_MOST_PAIRS", 3)
    assert not on_device(interleaved(), 1)


def test_the_check_gives_up_where_there_are_too_many_numbers() -> None:
    (found,) = on_device(interleaved(), 1)
    many = interleaved(microbatches=64, memory={"capacity": 128})
    assert verdict(many, found) is Verdict.REFUSED
    assert not on_device(many, 1)


@pytest.mark.parametrize("evidence", (ReturnTo(1, 1), ReturnTo(0, 1), ReturnTo(1, 2), ReturnTo(2, 0), OnDevice(1)))
def test_evidence_of_other_devices_is_refused(evidence: ReturnTo | OnDevice) -> None:
    asked = interleaved()
    (found,) = on_device(asked, 1)
    assert verdict(asked, replace(found, evidence=evidence)) is Verdict.REFUSED
