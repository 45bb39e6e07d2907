"""Which horizons the Lagrangian bound tries and what it proves of them, under multipliers that no solver finds.

    python -m tests.solver.bounds.test_lagrangian_horizons

writes the file that holds them anew, after a change that is meant to change them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import floor, inf
from pathlib import Path
from random import Random
from threading import Event

import numpy as np
import pytest

from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.bound_problems import draw
from formulations.single_device.visits import Later, OneDevice, Trip, Visit
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import DeviceMultipliers
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.lagrangian import bound
from solver.bounds.lagrangian.subproblem import Multipliers
from tests.support.makers import gpt_1_5b, problem

HELD = Path(__file__).with_name("lagrangian_horizons.json")
(LIKELY,) = (branch.likely for branch in BRANCHES if branch.name == "Lagrangian")
Found = Callable[[OneDevice, int, float], Multipliers | None]


def even(device: OneDevice, until: int, seconds: float) -> Multipliers:
    """The same at instants that are as far apart, with more for the memory the less there is of it."""
    assert seconds > 0
    instants = np.arange(0, until, max(1, until // 40))
    room = 100 // device.capacity if device.capacity else 0
    return Multipliers(instants, np.full(len(instants), 60), np.full(len(instants), room))


@contextmanager
def given(found: Found) -> Iterator[list[int]]:
    """The bound with these multipliers; the horizons that are tried."""
    asked: list[int] = []

    def noted(device: OneDevice, until: int, seconds: float) -> Multipliers | None:
        asked.append(until)
        return found(device, until, seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bound, "find_multipliers", noted)
        yield asked


def tried(one: Problem, proved: int, at_most: int) -> tuple[list[int], list[Certificate]]:
    """The horizons and what is proved."""
    with given(even) as asked:
        return asked, list(bound.lagrangian_bounds(one, proved, at_most, 60, Event()))


def problems() -> list[tuple[Problem, int, int]]:
    """Each with a bound and a known value: tiny ones whose first horizon is refuted by the work of a device alone."""
    random = Random(3)
    drawn = (replace(draw(random, LIKELY), microbatches=12) for _ in range(14))
    work = ((one, floor(max(each.value for each in certificates(one, one.objective)))) for one in drawn)
    return [(gpt_1_5b(4, 12, 2), 0, 1_000_000), *((one, known // 4, 2 * known) for one, known in work)]


def horizons() -> list[list[list[str]]]:
    """Of each problem the horizons that are tried, and the certificates."""
    found = []
    for asked, proved in (tried(*each) for each in problems()):
        texts = [f"{one.value} {one.text}" for one in proved]
        found.append([list(map(str, asked)), texts])
    return found


def test_which_horizons_are_tried_and_what_is_proved() -> None:
    assert horizons() == json.loads(HELD.read_text(encoding="utf-8"))


def test_all_that_is_proved_stands_the_check() -> None:
    count = 0
    for bounded, low, high in problems():
        for one in tried(bounded, low, high)[1]:
            assert check_bound(bounded, one).verdict is Verdict.VERIFIED
            assert isinstance(one.evidence, DeviceMultipliers) and one.evidence.device == one.device
            count += 1
    assert count > 20


def test_it_ends_where_no_multipliers_are_found_or_none_prove_more_than_is_known() -> None:
    one = gpt_1_5b(4, 12, 2)
    with given(lambda *_: None) as asked:
        assert not list(bound.lagrangian_bounds(one, 0, 1_000_000, 60, Event()))
    assert len(asked) == 2  # once on either device
    with given(even) as asked:
        assert not list(bound.lagrangian_bounds(one, 900_000, 1_000_000, 60, Event()))
        assert len(asked) == 2
        assert not list(bound.lagrangian_bounds(one, 0, 2**60 + 1, 60, Event()))
        assert not list(bound.lagrangian_bounds(one, 0, 1_000_000, 0, Event()))
        assert len(asked) == 2
        assert not list(bound.lagrangian_bounds(one, 0, 2**60, 60, Event()))
    assert len(asked) == 4


def test_the_device_that_begins_first_and_ends_last_measures_the_span_of_another() -> None:
    """Device 2 has most to do; the ways to it from device 0 and back are the longest."""
    one = problem(3, 6, times={"forward": [1, 1, 9], "backward": 2, "weight": 1, "transfer": 3}, objective="span")
    found = tried(one, 0, 150)[1]
    assert {(each.device, each.evidence.owner) for each in found} == {(2, 0)}  # type: ignore[union-attr]


def test_the_next_horizon_is_halfway_where_counts_say_nothing() -> None:
    def following(few: float, many: float) -> int:
        return bound._next(bound._Asked(100, few), bound._Asked(200, many), 10)

    assert [following(5.0, many) for many in (9.0, 10.0, 10.005)] == [150, 150, 150]
    assert following(5.0, 20.0) == 100 + 100 * 5 // 15
    assert (following(9.9, 20.0), following(5.0, 10.02)) == (112, 188)  # no nearer than an eighth
    assert (following(8.0, inf), following(4.0, inf)) == (125, 188)


def test_what_one_micro_batch_takes_alone() -> None:
    visits = Visit(0, 10, 5, 30, 2, 0, None), Visit(15, 20, 0, 0, 0, 1, Later(7, 1))
    trips = (Trip(8, visits),)
    assert bound._alone(OneDevice(4, trips, all_by_the_end=True)) == 42
    assert bound._alone(OneDevice(4, trips, all_by_the_end=False)) == 40


if __name__ == "__main__":
    HELD.write_text(json.dumps(horizons(), indent=1) + "\n", encoding="utf-8")
