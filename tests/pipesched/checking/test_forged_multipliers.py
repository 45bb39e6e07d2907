"""Multipliers that prove something, and each way in which a forger could damage them: all are refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.checking.lagrangian import lagrangian
from pipesched.problem.problem import Objective
from pipesched.results.evidence import DeviceMultipliers
from tests.support.makers import problem

# Device 0 computes 12 in four micro-batches, and its memory holds two activations of 10 at once.
ONE = problem(
    2, 4, times={"forward": 1, "backward": 1, "weight": 1, "transfer": 2}, memory={"activation": 10, "capacity": 25}
)
UNTIL = 11
GENUINE = DeviceMultipliers(0, None, ONE.tick, UNTIL, Fraction(1), tuple(range(UNTIL)), (5,) * UNTIL, (0,) * UNTIL)
BIG = 2**59


def test_work_that_does_not_fit_is_refuted() -> None:
    assert lagrangian(ONE, GENUINE) == UNTIL + 1
    with pytest.raises(RefusedEvidenceError, match="cost 60 and device 0 is worth 60"):
        lagrangian(ONE, replace(GENUINE, until=12, instants=tuple(range(12)), running=(5,) * 12, holding=(0,) * 12))


def test_memory_over_time_that_does_not_fit_is_refuted() -> None:
    """Each activation is held from its forward to its weight pass: with two at once there is no room for four in 11."""
    held = replace(GENUINE, running=(0,) * UNTIL, holding=(1,) * UNTIL)
    assert lagrangian(ONE, held) == UNTIL + 1
    # In units of more than half the room one activation fits; in units of an activation two.
    for unit, until in ((10, 11), (5, 11), (Fraction(5, 2), 11)):
        assert lagrangian(ONE, replace(held, memory_unit=Fraction(unit))) == until + 1
    with pytest.raises(RefusedEvidenceError, match="worth 22"):
        lagrangian(ONE, replace(held, memory_unit=Fraction(11)))  # an activation is none of them


@pytest.mark.parametrize(
    ("reason", "damage"),
    [
        ("not as many multipliers", {"instants": GENUINE.instants[:-1]}),
        ("not as many multipliers", {"running": GENUINE.running[:-1]}),
        ("not as many multipliers", {"holding": GENUINE.holding[:-1]}),
        ("not as many multipliers", {"instants": (), "running": (), "holding": ()}),
        ("below 0", {"instants": (-1, *GENUINE.instants[1:])}),
        ("below 0", {"running": (-1, *GENUINE.running[1:])}),
        ("below 0", {"holding": (-1, *GENUINE.holding[1:])}),
        ("do not ascend", {"instants": (0, 0, *GENUINE.instants[2:])}),
        ("do not ascend", {"instants": (1, 0, *GENUINE.instants[2:])}),
        ("too large", {"instants": (*GENUINE.instants[:-1], BIG)}),
        ("too large", {"until": BIG}),
        ("too large", {"running": (BIG, *GENUINE.running[1:])}),
        ("too large", {"holding": (BIG // 25, *GENUINE.holding[1:])}),
        ("no multiples of", {"tick": ONE.tick * Fraction(3, 2)}),
        ("no multiples of", {"tick": ONE.tick / 2}),
        ("no device 2", {"device": 2}),
        ("no device -1", {"device": -1}),
        ("not measured so", {"owner": 0}),
        ("is worth", {"until": UNTIL + 100}),
    ],
    ids=str,
)
def test_damaged_multipliers_are_refused(reason: str, damage: dict[str, object]) -> None:
    with pytest.raises(RefusedEvidenceError, match=reason):
        lagrangian(ONE, replace(GENUINE, **damage))  # type: ignore[arg-type]


def test_instants_in_coarser_ticks_are_those_of_the_problem() -> None:
    """Twice the tick: instants 0, 2, 4, ... and a time of ten of the problem's ticks."""
    coarse = replace(GENUINE, tick=2 * ONE.tick, until=5, instants=tuple(range(5)), running=(5,) * 5, holding=(0,) * 5)
    with pytest.raises(RefusedEvidenceError, match="worth 25"):
        lagrangian(ONE, coarse)
    long = ONE.with_stages(**dict.fromkeys(("forward", "backward", "weight"), (2, 2)), fused=(4, 4))
    assert lagrangian(long, coarse) == 12  # all times are even


def test_what_memory_without_a_limit_is_worth_is_nothing() -> None:
    free = ONE.with_room((None, None))
    assert lagrangian(free, GENUINE) == UNTIL + 1
    with pytest.raises(RefusedEvidenceError, match="no limit"):
        lagrangian(free, replace(GENUINE, holding=(1, *GENUINE.holding[1:])))


def test_blocks_are_not_covered_and_spans_have_an_owner() -> None:
    with pytest.raises(NotCoveredError, match="blocks"):
        lagrangian(ONE.with_stages(overlapped=(3, 3)), GENUINE)
    span = replace(ONE, objective=Objective.SPAN)
    assert lagrangian(span, replace(GENUINE, owner=0)) > UNTIL
    for owner in (None, 1, 2):
        with pytest.raises(RefusedEvidenceError):
            lagrangian(span, replace(GENUINE, owner=owner))


def test_the_largest_numbers_that_add_up_are_taken() -> None:
    """In 64 bits: a device that is worth just less than 2**59, and none of more."""
    most = replace(GENUINE, running=((BIG - 1) // UNTIL,) * UNTIL)
    assert lagrangian(ONE, most) == UNTIL + 1
    much = ONE.with_stages(activation=(BIG // 2, 2)).with_room((BIG - 1, 5))
    held = replace(GENUINE, memory_unit=ONE.resolution, running=(0,) * UNTIL, holding=(1,) + (0,) * (UNTIL - 1))
    with pytest.raises(RefusedEvidenceError, match="is worth"):
        lagrangian(much, held)
    with pytest.raises(RefusedEvidenceError, match="too large"):
        lagrangian(much, replace(held, holding=(1, 1) + (0,) * (UNTIL - 2)))
