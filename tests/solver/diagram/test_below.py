"""Diagrams below a value: never above all orders, exact where nothing is merged, and checked."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from threading import Event

import numpy as np
import pytest

from pipesched.checking.diagram.completion import completions
from pipesched.checking.diagram.walk import walk_along
from pipesched.checking.finding import Verdict
from pipesched.errors import BadInput
from pipesched.problem import placement
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingStepsBelow
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence_document import evidence_document, evidence_from
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram import below as bound
from solver.diagram import values as tried
from solver.diagram.below import bounds_of_devices
from solver.diagram.completion import Rests, completion
from solver.diagram.device_sets import in_even_steps
from solver.diagram.follow import least_end
from solver.diagram.guide import guide_of
from solver.diagram.layers import Least
from solver.diagram.steps import Kept, kept_stages, stages_on, without_blocks
from solver.engine.finish import finished
from solver.engine.opening.analytic_bounds import AnalyticBounds
from solver.engine.opening.sequential import Sequential
from solver.engine.parts.bounds.below import BelowOnDevices
from solver.engine.run import run
from solver.engine.search import Engine, Search
from solver.limits import Limits
from tests.solver.diagram import test_blocks as blocks
from tests.solver.diagram.test_all_orders import HELD, UNEVEN, WHOLE, v_shape
from tests.support.certified import (
    assert_proved_and_no_more,
    assert_refused_with_lower_values,
    attack_refutes,
    verdict,
)
from tests.support.columns import Costs, Memory, build

NUMBERS, WORK = 10**7, 10**7
TIMES = {"forward": [9, 11, 10, 13, 8, 12], "backward": [10, 9, 14, 11, 12, 10], "weight": [5, 11, 8, 13, 9, 10]}
MERGING = v_shape(3, 8, 6, times=TIMES)


IN_BLOCKS = blocks.posed(3, 6, 4, times=TIMES | {"overlapped": [20, 25, 26, 30, 23, 27]})


def load(one: Problem) -> float:
    return float(certificates(one, one.objective)[0].value)


def kept(one: Problem, devices: tuple[int, ...]) -> Kept:
    chain = one.placement.chains[0]
    found = kept_stages(one, Paths(one), chain, stages_on(one, chain, devices))
    assert found is not None
    return found


def rests(one: Kept) -> list[Rests]:
    found = completion(one.steps, NUMBERS, Event())
    assert found is not None
    return found


def below(problem: Problem, one: Kept, value: int, width: int = 64, work: int = WORK) -> Least:
    return least_end(one.steps, width, work, Event(), guide_of(problem, one, one, rests(one)), value)


def exact(one: Kept) -> int:
    found = least_end(one.steps, 512, WORK, Event())
    assert found.ticks is not None and not found.merged
    return found.ticks


@pytest.mark.parametrize(
    "one",
    [
        v_shape(2, 7, 0, times=UNEVEN, memory=HELD),
        v_shape(2, 6, 3, times=WHOLE, objective="makespan"),
        v_shape(2, 7, 4, times=UNEVEN, objective="makespan"),
        blocks.posed(2, 5, 4, times=blocks.UNEVEN),
        blocks.posed(2, 6, 3, "span"),
        blocks.posed(2, 5, 3, "span", times=blocks.WHOLE),
        blocks.posed(3, 5, 2, times=blocks.WHOLE, placement="linear"),
        blocks.posed(4, 8, 3, placement="bidirectional"),
    ],
)
def test_all_orders_end_no_sooner_whatever_the_value(one: Problem) -> None:
    """Below the least end the value itself is proved; above it, the least end where nothing is merged."""
    steps = kept(one, (0, 1))
    least = exact(steps)
    for value in (least // 2, least - 1, least, least + 1, least + 7, 2 * least):
        assert below(one, steps, value).ticks == min(value, least)
        assert min(value, least) >= (below(one, steps, value, 1).ticks or 0) >= 0.8 * min(value, least)


@pytest.mark.parametrize(
    "one",
    [
        *(v_shape(2, 6 + n, 4, times=UNEVEN, objective=("span", "makespan")[n]) for n in range(2)),
        *(blocks.posed(2, 6, 4, objective, times=blocks.UNEVEN) for objective in ("span", "makespan")),
    ],
)
def test_what_remains_is_no_longer_than_any_end(one: Problem) -> None:
    """From the start; and bound and check count the same."""
    steps = kept(one, (0, 1))
    found, check = rests(steps), completions(walk_along(one, one.placement.chains[0], (), only_last=False))
    assert 0.6 * exact(steps) <= found[0].rests.max() <= exact(steps)
    for own, other in zip(found, check, strict=True):
        assert np.array_equal(own.keys, other.keys) and np.array_equal(own.rests, other.follows)


def test_a_gradient_that_is_through_waits_for_nothing() -> None:
    """Bound and check count the same where the last device has most left to run when the oldest micro-batch ends."""
    backward = (11, 11, 11, 10)
    costs = Costs((62,) * 4, backward, None, backward, (0,) * 4, overlapped=(63, 62, 62, 54))
    one = build(placement.interleaved(2, 2), 4, costs, Memory((3, 3, 3, 2), (0, 0, -2, -3), (9, 9)))
    check = completions(walk_along(one, one.placement.chains[0], (), only_last=False))
    found = rests(kept(one, (0, 1)))
    assert all(np.array_equal(own.rests, other.follows) for own, other in zip(found, check, strict=True))


@pytest.mark.parametrize(("one", "width"), [(MERGING, 2), (IN_BLOCKS, 8)])
def test_fewer_labels_are_merged(one: Problem, width: int) -> None:
    """With as many labels of a state more is proved than all orders give, of fewer labels."""
    steps = kept(one, (0, 1, 2))
    plain = least_end(steps.steps, width, WORK, Event())
    assert plain.ticks is not None
    found = below(one, steps, plain.ticks + 3, width)
    assert found.ticks is not None and found.ticks > plain.ticks
    assert found.work < plain.work


def test_values_up_to_that_of_a_schedule_are_tried() -> None:
    steps = kept(MERGING, (0, 1, 2))
    least = exact(steps)
    found = [*bounds_of_devices(MERGING, Event(), least - 100, least + 30, (1,))]
    values = [one.value for one in found]
    assert values == sorted(set(values)) and values[-1] <= least
    assert values[-1] > least_end(steps.steps, 1, WORK, Event()).ticks  # type: ignore[operator]
    refuted = [*bounds_of_devices(MERGING, Event(), least - 100, least - 40, (8,))]
    assert refuted[-1].value == least - 40
    assert [*bounds_of_devices(MERGING, Event(), least, least, (8,))] == []


@pytest.mark.parametrize(
    ("one", "optimum"),
    [
        (blocks.posed(2, 6, 3, "span"), 390),
        (blocks.posed(2, 6, 3, times=blocks.WHOLE), 460),
        (blocks.posed(3, 6, 2, "span", placement="linear"), 250),
        (blocks.posed(3, 6, 2, times=blocks.WHOLE, placement="linear"), 300),
    ],
)
def test_the_optimum_is_proved_from_below_and_nothing_above_it(one: Problem, optimum: int) -> None:
    """A solve finds schedules with these values."""
    ticks = optimum // one.in_units(Fraction(1))
    values = [each.value for each in bounds_of_devices(one, Event(), 0.9 * ticks, 1.2 * ticks)]
    assert values == sorted(set(values)) and values[-1] == ticks


def test_devices_in_even_steps() -> None:
    one = v_shape(7, 4, 3, placement="linear")
    sets = [*in_even_steps(one, one.placement.chains[0], 4)]
    assert sets == [(0, 1, 3, 4, 6), (0, 2, 4, 6), (0, 3, 6), (0, 6)]


def test_nothing_is_said_of_tasks_or_after_a_stop_or_with_too_much_work() -> None:
    one = v_shape(2, 8, 3)
    sent = v_shape(2, 8, 3, times=UNEVEN | {"transfer": {"time": 2, "on": "comm"}}, streams=["compute", "comm"])
    assert [*bounds_of_devices(sent, Event(), 0, 900)] == []
    stop = Event()
    stop.set()
    assert [*bounds_of_devices(one, stop, 0, 900)] == []
    steps = kept(one, (0, 1))
    assert completion(steps.steps, NUMBERS, stop) is None
    assert [*bounds_of_devices(one, Event(), 0, 900, work=10)] == []
    assert [*bounds_of_devices(one, Event(), 0, 900, numbers=10)] == []
    assert completion(steps.steps, 10, Event()) is None
    assert below(one, steps, 900, work=100).ticks is None
    assert completion(steps.steps._replace(ticks=steps.steps.ticks * 2**26), NUMBERS, Event()) is None
    assert completion(steps.steps._replace(blocks=steps.steps.blocks + 2**26), NUMBERS, Event()) is None


@pytest.mark.parametrize("mistake", ["a rest that is longer", "what is left out ends later"])
def test_an_attack_finds_what_claims_too_much(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def longer(*given: object) -> list[Rests] | None:
        found = completion(*given)  # type: ignore[arg-type]
        return found and [layer._replace(rests=layer.rests + 1) for layer in found]

    def later(*given: object) -> Least:
        found = least_end(*given)  # type: ignore[arg-type]
        return found if found.ticks is None else found._replace(ticks=found.ticks + 1)

    if mistake.startswith("a rest"):
        monkeypatch.setattr(bound, "completion", longer)
    else:
        monkeypatch.setattr(tried, "least_end", later)
    assert attack_refutes("crossings of steps below a value, V", 40)


def test_an_attack_finds_blocks_that_are_not_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*given: object) -> Kept | None:
        found = kept_stages(*given)  # type: ignore[arg-type]
        return found and found._replace(steps=without_blocks(found.steps))

    monkeypatch.setattr(bound, "kept_stages", none)
    assert attack_refutes("crossings of steps below a value, blocks, one backward", 12)


@pytest.mark.parametrize("objective", list(Objective)[:2])
def test_the_check_proves_the_same_and_no_more(objective: Objective) -> None:
    memory = {"capacity": 4, "freed_by_backward": 0.5}
    uneven = v_shape(2, 7, 0, times=UNEVEN, memory=memory, objective=objective.value)
    bidirectional = v_shape(4, 8, 3, placement="bidirectional", objective=objective.value)
    held = v_shape(2, 7, 0, times=UNEVEN, memory=HELD, objective=objective.value)
    in_blocks = blocks.posed(2, 6, 0, objective.value, times=blocks.UNEVEN, memory=memory)
    for one in (uneven, bidirectional, held, in_blocks, replace(MERGING, objective=objective)):
        found = list(bounds_of_devices(one, Event(), 10, ceil(4 * load(one)), (1, 8)))
        assert_proved_and_no_more(one, found)
        assert_refused_with_lower_values(one, found)


def test_a_higher_value_proves_no_more_than_the_optimum() -> None:
    one = v_shape(2, 8, 3, times=WHOLE)
    assert one.in_units(Fraction(60)) == 600
    for value in (59, 60, 61, 70, 2**28):
        claim = Certificate(CrossingStepsBelow.form, min(value, 60), "", 0, CrossingStepsBelow(0, (0, 1), 64, value))
        assert verdict(one, claim) is Verdict.VERIFIED
        assert verdict(one, replace(claim, value=claim.value + 1)) is Verdict.REFUSED


@pytest.mark.parametrize(
    "evidence",
    [
        CrossingStepsBelow(1, (1,), 8, 500),
        CrossingStepsBelow(0, (1, 0), 8, 500),
        CrossingStepsBelow(0, (0, 1), 0, 500),
        CrossingStepsBelow(0, (0, 1), 8, -1),
        CrossingStepsBelow(0, (0, 1), 8, 0),
    ],
)
def test_evidence_of_no_steps_is_refused(evidence: CrossingStepsBelow) -> None:
    claim = Certificate(CrossingStepsBelow.form, 1, "", 0, evidence)
    assert verdict(v_shape(2, 8, 3), claim) is Verdict.REFUSED


def test_a_document_without_the_value_is_refused() -> None:
    document = evidence_document(CrossingStepsBelow(0, (0, 1), 8, 500))
    del document["below"]
    with pytest.raises(BadInput, match="below"):
        evidence_from(document)


def test_the_check_does_not_begin_what_takes_too_long() -> None:
    claim = Certificate(CrossingStepsBelow.form, 1, "", 0, CrossingStepsBelow(0, (0, 1, 2, 3), 8, 500))
    assert verdict(v_shape(4, 40, 40), claim) is Verdict.NOT_VERIFIED
    large = v_shape(2, 8, 3, times={"forward": 10**7, "backward": 10**7 + 1})
    assert verdict(large, replace(claim, evidence=CrossingStepsBelow(0, (0, 1), 8, 500))) is Verdict.NOT_VERIFIED


@pytest.mark.parametrize("one", (v_shape(3, 8, 3), IN_BLOCKS))
def test_a_search_by_it_alone_raises_the_bound(one: Problem) -> None:
    engine = Engine(AnalyticBounds(load_only=True), (Sequential(),), (BelowOnDevices(),), finished)
    search = Search(one, Limits(workers=1, deterministic=40), lambda _: None, Event(), engine)
    run(search)
    assert not search.incumbent.state.notes
    first = search.incumbent.state.certificates[0].evidence
    assert isinstance(first, Diagram) and first.below is not None


def test_the_sentence() -> None:
    *_, found = bounds_of_devices(v_shape(2, 8, 3), Event(), 40, 60)
    assert found.text == (
        "The forwards and gradients of stages 0, 1, 2, 3 take turns on devices 0, 1: a device starts one of these forwards "
        "only while its memory has room for it besides others of these; a micro-batch is away for as long as other stages "
        "take. Orders that cannot end before 550 are not followed to their end. In whichever order they run, all 8 "
        "micro-batches take at least 510."
    )
