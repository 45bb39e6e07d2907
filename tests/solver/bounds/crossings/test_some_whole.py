"""Crossings of steps with some whole weight passes: between interruptible and whole ones, and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from threading import Event
from typing import NamedTuple

import numpy as np
import pytest

from pipesched.checking.diagram import replay
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingSomeWhole
from solver.bounds.crossing_some_whole import bound, follow
from solver.bounds.crossing_some_whole.bound import bounds_with_some_whole
from solver.bounds.crossing_some_whole.follow import interruptible, least_with_some_whole
from solver.bounds.crossing_steps.bound import KIND as INTERRUPTED
from solver.bounds.crossing_steps.bound import least_value
from solver.bounds.crossing_whole.weights import weights_of
from solver.engine import search as engine_search
from solver.engine.final_phase import finished
from solver.engine.phases.bounds.analytic_bounds import AnalyticBounds
from solver.engine.phases.bounds.crossing_some_whole import CrossingsSomeWhole
from solver.engine.phases.bounds.crossing_steps import CrossingSteps
from solver.engine.phases.sequential import Sequential
from solver.engine.search import Engine, Search
from solver.limits import Limits
from tests.solver.bounds.crossings.test_steps import v_shape
from tests.solver.bounds.crossings.test_whole import LONG_WEIGHTS, UNEVEN_OF_TWO, V, drawn, kept, least, line
from tests.support.certified import assert_proved_and_no_more, attack_refutes, verdict

WORK, WIDTH = 10**7, 10_000


class Some(NamedTuple):
    ticks: int
    merged: bool


def some(problem: Problem, whole: Sequence[int], many: int, width: int = WIDTH) -> Some:
    """What whole weight passes prove on these devices in front of so many steps."""
    steps = kept(problem, tuple(range(problem.devices)))
    found = least_with_some_whole(steps, whole, many, width, WORK, Event())
    assert found.ticks is not None
    return Some(found.ticks, found.merged)


@pytest.mark.parametrize("seed", range(6))
def test_more_of_them_prove_no_less_up_to_all_of_them(seed: int) -> None:
    random = Random(seed)
    for placement in ("linear", "v-shape"):
        one = drawn(random, placement, 4)
        steps = kept(one, tuple(range(one.devices)))
        last = len(steps.ticks) * steps.microbatches - 1
        none = least_value(steps, WIDTH, WORK, Event()).ticks
        for whole in ((), (0,), (1,), (0, 1)):
            proved = [some(one, whole, many).ticks for many in (0, last // 2, last)]
            assert none == proved[0] <= proved[1] <= proved[2]
            assert whole or none == proved[2]
        # Of the last step alone the weight passes may be interrupted: it and they end when whole ones do.
        assert proved[2] == least(steps)


def test_they_prove_more_than_interruptible_ones() -> None:
    """On the device whose weight passes are in the way."""
    for one in (LONG_WEIGHTS, V):
        last = 2 * len(one.stages) * one.microbatches - 1
        proved = [some(one, (device,), last).ticks for device in range(one.devices)]
        assert some(one, (), last).ticks < max(proved) <= some(one, range(one.devices), last).ticks


@pytest.mark.parametrize("seed", range(3))
def test_merged_labels_prove_no_more(seed: int) -> None:
    one = drawn(Random(seed), "v-shape", 5)
    last = 2 * len(one.stages) * one.microbatches - 1
    found = [some(one, (0, 1), last, width) for width in (1, 3, WIDTH)]
    assert found[0].ticks <= found[2].ticks and found[1].ticks <= found[2].ticks
    assert found[0].merged and not found[2].merged


def test_what_waits_counts_as_work_where_weight_passes_may_be_interrupted() -> None:
    steps = kept(V, (0, 1))
    weights = weights_of(steps, (1,))
    times = steps.in_flight + 4
    label = np.zeros((1, times + len(weights.ticks)), np.int64)
    label[0, steps.in_flight : times] = [30, 20, 25, 21]
    label[0, times:] = 1
    wanted = [30, 20, 30, 21 + weights.ticks.sum()]
    assert interruptible(label, steps, weights)[0, steps.in_flight :].tolist() == wanted
    assert (weights.first == [0, 0, len(weights.ticks)]).all()


@pytest.mark.parametrize("objective", list(Objective)[:2])
def test_the_check_proves_the_same_and_no_more(objective: Objective) -> None:
    random = Random(7)
    for placement in ("linear", "v-shape"):
        for width in (1, 3, 64):
            one = replace(drawn(random, placement, 4), objective=objective)
            for everywhere in (False, True):
                for rounds in (0, 1, 2, 9):
                    found = bounds_with_some_whole(one, Event(), width, rounds, everywhere=everywhere)
                    assert_proved_and_no_more(one, found)


def test_rounds_are_skipped_after_them() -> None:
    """Of many micro-batches, as where no weight pass is whole."""
    one = v_shape(2, 400, 3, times={"forward": [6, 9, 6, 9], "backward": [5, 6, 2, 7], "weight": [9, 9, 5, 4]})
    (found,) = bounds_with_some_whole(one, Event(), 8, 4)
    assert_proved_and_no_more(one, [found])
    assert found.value >= (least_value(kept(one, (0, 1)), 8, WORK, Event()).ticks or 0)


@pytest.mark.parametrize(
    "evidence",
    [
        CrossingSomeWhole(1, (0, 1), 8, (0,), 4),
        CrossingSomeWhole(0, (), 8, (), 4),
        CrossingSomeWhole(0, (1, 0), 8, (0,), 4),
        CrossingSomeWhole(0, (0, 1), 0, (0,), 4),
        CrossingSomeWhole(0, (0, 1), 8, (2,), 4),
        CrossingSomeWhole(0, (0,), 8, (1,), 4),
        CrossingSomeWhole(0, (0, 1), 8, (0,), -1),
        CrossingSomeWhole(0, (0, 1), 8, (0,), 64),
    ],
)
def test_evidence_of_no_steps_is_refused(evidence: CrossingSomeWhole) -> None:
    claim = Certificate(bound.KIND, 1, "", 0, CrossingSomeWhole(0, (0, 1), 8, (0,), 63))
    assert verdict(v_shape(2, 8, 3), claim) is Verdict.VERIFIED
    assert verdict(v_shape(2, 8, 3), replace(claim, evidence=evidence)) is Verdict.REFUSED


def test_nothing_is_said_of_tasks_or_blocks_or_after_a_stop_or_with_too_much_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = line(2, 4, 2, UNEVEN_OF_TWO | {"transfer": {"time": 2, "on": "comm"}}, streams=["compute", "comm"])
    blocks = v_shape(2, 4, 3, times={"forward": 2, "backward": 4, "overlapped": 5})
    for other in (sent, blocks):
        assert [*bounds_with_some_whole(other, Event())] == []
        claim = Certificate(bound.KIND, 1, "", 0, CrossingSomeWhole(0, (0, 1), 8, (0,), 4))
        assert verdict(other, claim) is Verdict.NOT_VERIFIED
    stop = Event()
    stop.set()
    (genuine,) = bounds_with_some_whole(V, Event())
    assert [*bounds_with_some_whole(V, stop)] == []
    assert [*bounds_with_some_whole(V, Event(), work=10)] == []
    monkeypatch.setattr(follow, "_OF_A_STATE", 1)
    assert [*bounds_with_some_whole(V, Event())] == []
    for file, most in ((replay, "_MOST_WHOLE"), (replay, "_MOST_AT_ONCE")):
        with monkeypatch.context() as patched:
            patched.setattr(file, most, 1)
            assert verdict(V, genuine) is Verdict.NOT_VERIFIED


def test_the_phase_comes_in_place_of_crossings_of_steps_with_more_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_search, "REFUTABLE_LITERALS", 0)

    def phases_of(*phases: object) -> Search:
        engine = Engine(AnalyticBounds(), (Sequential(),), phases, finished, raise_bounds=True)  # type: ignore[arg-type]
        search = Search(V, Limits(workers=1, deterministic=100), lambda _: None, Event(), engine)
        search.run()
        assert not search.incumbent.state.notes
        return search

    done = phases_of(CrossingsSomeWhole(near=0.1))
    kinds = [one.kind for one in done.incumbent.state.certificates]
    assert {bound.KIND, INTERRUPTED} <= set(kinds)
    for again in (False, True):
        assert not CrossingSteps(again=again, few=True, near=0.1).applies(done)
    assert not CrossingsSomeWhole(near=0.1).applies(done)
    for phase in (CrossingsSomeWhole(near=1e3), CrossingsSomeWhole(above=0.99)):
        assert bound.KIND not in [one.kind for one in phases_of(phase).incumbent.state.certificates]


def test_every_branch_of_the_attack_holds() -> None:
    for name in ("V", "room after W", "long weight passes, room after W", "weight passes of several lengths"):
        assert not attack_refutes(f"crossings of steps with some whole weight passes, {name}", 10)
