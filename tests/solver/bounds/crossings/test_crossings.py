"""The bound by crossings: exact where all times are equal, never above the optimum, and checked from its evidence."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from threading import Event

import pytest

from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import Crossings
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.first_stages import line
from solver.diagram.first_stages.bound import crossing_bounds, least_value, lines
from solver.limits import Limits
from solver.solve import solve
from tests.support.certified import assert_proved_and_no_more, attack_refutes, verdict
from tests.support.makers import problem

EVEN = {"forward": 10, "backward": 10, "weight": 10}
UNEVEN = {"forward": [9, 11, 10, 13], "backward": [10, 9, 11, 14], "weight": [11, 10, 9, 13]}

LONGER = {"forward": [9, 11, 10, 13, 8, 12], "backward": [10, 9, 11, 14, 10, 13], "weight": [11, 10, 9, 13, 8, 10]}


def even(microbatches: int, objective: str = "span", **keys: object) -> Problem:
    return problem(4, microbatches, times=EVEN, memory={"capacity": 2}, objective=objective, **keys)


def strongest(one: Problem, width: int = 64) -> Certificate:
    return max(crossing_bounds(one, Event(), width), key=lambda certificate: certificate.value_ticks)


@pytest.mark.parametrize("objective", ["span", "makespan"])
@pytest.mark.parametrize("microbatches", [6, 8, 12, 1000])
def test_what_cp_sat_finds_with_equal_times(microbatches: int, objective: str) -> None:
    """310, 410 and 610 are the optima that CP-SAT proves; analytic bounds grow by 45 a micro-batch."""
    one = even(microbatches, objective)
    assert one.in_units(Fraction(strongest(one).value_ticks)) == 50 * microbatches + 10


@pytest.mark.parametrize(("capacity", "width", "exact"), [(2, 64, True), (3, 3, False)])
def test_rounds_that_are_skipped_are_no_longer_than_each_of_them(
    capacity: int, width: int, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = problem(6, 200, times=LONGER, memory={"capacity": capacity}, objective="span")
    line_of_three = [*lines(one, Paths(one))][2]

    def values() -> list[int]:
        some = (line_of_three._replace(microbatches=m) for m in range(97, 180, 9))
        return [least_value(each, width, 10**9, Event())[0] or 0 for each in some]

    skipped = values()
    monkeypatch.setattr("solver.diagram.first_stages.bound.skip", lambda rounds, most: 0)
    each_round = values()
    assert skipped == each_round if exact else all(x <= y < 1.02 * x for x, y in zip(skipped, each_round, strict=True))


def test_merged_labels_prove_less() -> None:
    one = problem(6, 12, times=LONGER, memory={"capacity": 3}, objective="span")
    proved = [strongest(one, width).value_ticks for width in (1, 4, 64)]
    assert proved == sorted(proved) and proved[0] < proved[-1]


def test_nothing_is_said_of_blocks_or_of_ample_memory_or_after_a_stop() -> None:
    blocks = problem(4, 8, times={"forward": 10, "backward": 20, "overlapped": 25}, memory={"capacity": 2})
    assert list(crossing_bounds(blocks, Event())) == []
    assert list(crossing_bounds(even(8).with_room([None] * 4), Event())) == []
    assert list(crossing_bounds(even(8).with_room([8] * 4), Event())) == []
    stop = Event()
    stop.set()
    assert list(crossing_bounds(even(8), stop)) == []
    assert list(crossing_bounds(even(8), Event(), work=10)) == []


@pytest.mark.parametrize("mistake", ["admits one less", "no weight pass stays open"])
def test_an_attack_finds_what_claims_too_much(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sound_line, sound_pending = line.line_of, line._pending

    def fewer(problem: Problem, paths: Paths, stages: list[int]) -> line.Line | None:
        found = sound_line(problem, paths, stages)
        return found and found._replace(admitted=tuple(max(1, n - 1) for n in found.admitted))

    if mistake == "admits one less":
        monkeypatch.setattr("solver.diagram.first_stages.bound.line_of", fewer)
    else:
        monkeypatch.setattr(line, "_pending", lambda *stage: min(0, sound_pending(*stage)))
    assert attack_refutes("crossings, room after W")


def test_the_check_proves_the_same_and_no_more() -> None:
    uneven = problem(4, 40, times=UNEVEN, memory={"capacity": 3, "freed_by_backward": 0.5}, objective="span")
    for one in (even(12), even(40, "makespan"), uneven, replace(uneven, microbatches=9)):
        assert_proved_and_no_more(one, crossing_bounds(one, Event(), 8))


@pytest.mark.parametrize(
    "evidence",
    [
        Crossings((), 64),
        Crossings((1, 2), 64),
        Crossings((0, 2, 1), 64),
        Crossings((0, 0), 64),
        Crossings((0, 7), 64),
        Crossings((0, -1), 64),
        Crossings((0, 1), 0),
        Crossings((0, 1), 10**6),
    ],
)
def test_evidence_of_no_line_is_refused(evidence: Crossings) -> None:
    claim = Certificate("crossings", 1, "", 0, evidence)
    assert verdict(even(8), claim) is Verdict.REFUSED
    assert verdict(even(8), replace(claim, evidence=Crossings((0, 1), 1))) is Verdict.VERIFIED


def test_a_line_on_one_device_is_refused() -> None:
    one = problem(2, 6, placement=[0, 1, 1, 0], times=EVEN, memory={"capacity": 4})
    claim = Certificate("crossings", 1, "", 0, Crossings((0, 1, 2), 4))
    assert verdict(one, claim) is Verdict.REFUSED


def test_a_solve_proves_with_it_what_no_argument_in_words_does() -> None:
    one = even(16)
    found = solve(one, Limits(deterministic=2.0, workers=1))
    assert found.lower_bound_ticks == found.value_ticks == 81
    assert max(each.value_ticks for each in certificates(one, one.objective)) < 76
