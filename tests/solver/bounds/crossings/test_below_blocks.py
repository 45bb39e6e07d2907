"""The bound by crossings of steps below a value where blocks overlap: all blocks are tried, and all is checked."""

from __future__ import annotations

from fractions import Fraction
from threading import Event

import numpy as np
import pytest

from pipesched.checking.diagram.completion import completions
from pipesched.checking.diagram.walk import walk_along
from pipesched.checking.finding import Verdict
from pipesched.problem import placement
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingBlocks
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_below import bound
from solver.bounds.crossing_below.bound import crossing_bounds_below, device_sets
from solver.bounds.crossing_below.follow import Least, least_below
from solver.bounds.crossing_below.remaining import Remaining, remaining
from solver.bounds.crossing_blocks.blocks import block_ticks
from solver.bounds.crossing_blocks.bound import KIND as ALL_BLOCKS
from solver.bounds.crossing_blocks.bound import least_value
from solver.bounds.crossing_steps.steps import Numbers, Steps, steps_of
from solver.engine.final_phase import finished
from solver.engine.phases.bounds.analytic_bounds import AnalyticBounds
from solver.engine.phases.bounds.crossing_below import CrossingsBelow
from solver.engine.phases.bounds.crossing_steps import CrossingSteps
from solver.engine.phases.sequential import Sequential
from solver.engine.search import Engine, Search
from solver.limits import Limits
from tests.solver.bounds.crossings.test_blocks import UNEVEN, WHOLE, posed
from tests.support.certified import (
    assert_proved_and_no_more,
    assert_refused_with_lower_values,
    attack_refutes,
    verdict,
)
from tests.support.columns import Costs, Memory, build

WORK = 10**7
TIMES = {"forward": [9, 11, 10, 13, 8, 12], "backward": [10, 9, 14, 11, 12, 10], "weight": [5, 11, 8, 13, 9, 10]}
MERGING = posed(3, 6, 4, times=TIMES | {"overlapped": [20, 25, 26, 30, 23, 27]})


def relaxed(one: Problem, devices: tuple[int, ...], longer: int = 0) -> tuple[Steps, Numbers]:
    """The steps of the first chain on some devices, and the blocks, so much longer."""
    chain = one.placement.chains[0]
    steps, blocks = steps_of(one, Paths(one), chain, devices), block_ticks(one, chain, devices)
    assert steps is not None
    return steps, np.where(blocks < 0, -1, blocks + longer)


def below(steps: Steps, blocks: Numbers, value: int, width: int = 64) -> Least:
    rest = remaining(steps, blocks, 10**7, Event())
    assert rest is not None
    return least_below(steps, rest, width, value, WORK, Event())


def exact(steps: Steps, blocks: Numbers) -> int:
    found = least_value(steps, blocks, 512, WORK, Event())
    assert found.ticks is not None and not found.merged
    return found.ticks


@pytest.mark.parametrize("number", range(5))
def test_all_orders_and_blocks_end_no_sooner_whatever_the_value(number: int) -> None:
    """Below the least end the value itself is proved; above it, the least end where nothing is merged."""
    one = (
        posed(2, 5, 4, times=UNEVEN),
        posed(2, 6, 3, "span"),
        posed(2, 5, 3, "span", times=WHOLE),
        posed(3, 5, 2, times=WHOLE, placement="linear"),
        posed(4, 8, 3, placement="bidirectional"),
    )[number]
    steps, blocks = relaxed(one, (0, 1))
    least = exact(steps, blocks)
    for value in (least // 2, least - 1, least, least + 1, 2 * least):
        assert below(steps, blocks, value).ticks == min(value, least)
        assert min(value, least) >= (below(steps, blocks, value, 1).ticks or 0) >= 0.8 * min(value, least)


@pytest.mark.parametrize("objective", list(Objective)[:2])
def test_what_remains_is_no_longer_than_any_end(objective: Objective) -> None:
    """From the start; and bound and check count the same."""
    one = posed(2, 6, 4, objective.value, times=UNEVEN)
    steps, blocks = relaxed(one, (0, 1))
    found = remaining(steps, blocks, 10**7, Event())
    check = completions(walk_along(one, one.placement.chains[0], (), only_last=False))
    assert found is not None and 0.6 * exact(steps, blocks) <= found.layers[0].rests.max() <= exact(steps, blocks)
    for own, other in zip(found.layers, check, strict=True):
        assert np.array_equal(own.keys, other.keys) and np.array_equal(own.rests, other.follows)


def test_a_gradient_that_is_through_waits_for_nothing() -> None:
    """Bound and check count the same where the last device has most left to run when the oldest micro-batch ends."""
    backward = (11, 11, 11, 10)
    costs = Costs((62,) * 4, backward, None, backward, (0,) * 4, overlapped=(63, 62, 62, 54))
    one = build(placement.interleaved(2, 2), 4, costs, Memory((3, 3, 3, 2), (0, 0, -2, -3), (9, 9)))
    found = remaining(*relaxed(one, (0, 1)), 10**7, Event())
    assert found is not None
    check = completions(walk_along(one, one.placement.chains[0], (), only_last=False))
    assert all(np.array_equal(own.rests, other.follows) for own, other in zip(found.layers, check, strict=True))


def test_blocks_decide_unless_they_are_slow() -> None:
    one = posed(2, 4, 4)
    assert exact(*relaxed(one, (0, 1))) < exact(*relaxed(one, (0, 1), 1_000))
    for longer in (0, 6, 1_000):
        steps, blocks = relaxed(one, (0, 1), longer)
        assert below(steps, blocks, 10**6).ticks == exact(steps, blocks)


def test_fewer_labels_are_merged() -> None:
    """With eight labels a state more is proved than all orders and blocks give with as many."""
    steps, blocks = relaxed(MERGING, (0, 1, 2))
    plain = least_value(steps, blocks, 8, WORK, Event())
    assert plain.ticks is not None
    found = below(steps, blocks, plain.ticks + 3, 8)
    assert found.ticks is not None and found.ticks > plain.ticks
    assert found.work < plain.work


@pytest.mark.parametrize(
    ("one", "optimum"),
    [
        (posed(2, 6, 3, "span"), 390),
        (posed(2, 6, 3, times=WHOLE), 460),
        (posed(3, 6, 2, "span", placement="linear"), 250),
        (posed(3, 6, 2, times=WHOLE, placement="linear"), 300),
    ],
)
def test_the_optimum_is_proved_from_below_and_nothing_above_it(one: Problem, optimum: int) -> None:
    """A solve finds schedules with these values."""
    ticks = optimum // one.in_units(Fraction(1))
    found = [*crossing_bounds_below(one, Event(), 0.9 * ticks, 1.2 * ticks)]
    values = [certificate.value for certificate in found]
    assert values == sorted(set(values)) and values[-1] == ticks


def test_fewer_devices_than_without_blocks() -> None:
    one = posed(5, 8, 4)
    sets = [*device_sets(one, one.placement.chains[0])]
    assert sets == [(0, 2, 4), (0, 4)]


def test_an_attack_finds_blocks_that_are_not_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*given: object) -> Numbers:
        return np.full_like(block_ticks(*given), -1)  # type: ignore[arg-type]

    monkeypatch.setattr(bound, "block_ticks", none)
    assert attack_refutes("crossings of steps below a value, blocks, one backward", 12)


def test_an_attack_finds_a_rest_that_is_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    def longer(*given: object) -> Remaining | None:
        found = remaining(*given)  # type: ignore[arg-type]
        layers = () if found is None else found.layers
        return found and found._replace(layers=[layer._replace(rests=layer.rests + 1) for layer in layers])

    monkeypatch.setattr(bound, "remaining", longer)
    assert attack_refutes("crossings of steps below a value, blocks, one backward", 12)


@pytest.mark.parametrize("objective", list(Objective)[:2])
def test_the_check_proves_the_same_and_no_more(objective: Objective) -> None:
    memory = {"capacity": 4, "freed_by_backward": 0.5}
    uneven = posed(2, 6, 0, objective.value, times=UNEVEN, memory=memory)
    bidirectional = posed(4, 8, 3, objective.value, placement="bidirectional")
    for one in (uneven, posed(2, 6, 3, objective.value, times=WHOLE), bidirectional):
        found = list(crossing_bounds_below(one, Event(), 20, 300, (1, 8)))
        assert_proved_and_no_more(one, found)
        assert_refused_with_lower_values(one, found)


def test_evidence_of_all_blocks_is_not_taken_for_it() -> None:
    claim = Certificate(bound.KIND, 1, "", 0, CrossingBlocks(0, (0, 1), 8))
    assert verdict(posed(2, 4, 4), claim) is Verdict.REFUSED


def test_the_phase_raises_the_bound_of_crossings_with_blocks() -> None:
    def kinds(phase: CrossingsBelow) -> list[str]:
        """Of the certificates after little work on all orders, the strongest first."""
        phases = (CrossingSteps(share=1e-3, widths=(1,)), phase)
        engine = Engine(AnalyticBounds(load_only=True), (Sequential(),), phases, finished, raise_bounds=True)
        search = Search(MERGING, Limits(workers=1, deterministic=40), lambda _: None, Event(), engine)
        search.run()
        assert not search.incumbent.state.notes
        return [one.kind for one in search.incumbent.state.certificates]

    assert kinds(CrossingsBelow())[:2] == [bound.KIND, ALL_BLOCKS]
    for none in (CrossingsBelow(above=0.9), CrossingsBelow(least_with_blocks=4), CrossingsBelow(near=2)):
        assert bound.KIND not in kinds(none)


def test_the_sentence() -> None:
    one = posed(2, 4, 4)
    *_, found = crossing_bounds_below(one, Event(), 100, 250)
    assert found.text == (
        "On devices 0, 1 the forwards and gradients of 4 stages of a chain take turns, or run two at a time as an "
        "overlapped block, which ends both; a device starts a forward only while its memory has room for it; a "
        "micro-batch is away for as long as other devices take. Orders that cannot end before 254 are not followed to "
        "their end; in whichever order and blocks they run, all 4 micro-batches take at least 236."
    )
