"""The bound by crossings of steps below a value: never above all orders, exact where nothing is merged, and checked."""

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
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingStepsBelow
from pipesched.results.evidence_document import evidence_document, evidence_from
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.crossing_below import bound
from solver.bounds.crossing_below.bound import crossing_bounds_below, device_sets
from solver.bounds.crossing_below.follow import Least, least_below
from solver.bounds.crossing_below.remaining import Remaining, remaining
from solver.bounds.crossing_steps.bound import least_value
from solver.bounds.crossing_steps.steps import Numbers, Steps
from solver.engine.final_phase import finished
from solver.engine.phases.bounds.analytic_bounds import AnalyticBounds
from solver.engine.phases.bounds.crossing_below import CrossingsBelow
from solver.engine.phases.bounds.crossing_steps import CrossingSteps
from solver.engine.phases.sequential import Sequential
from solver.engine.search import Engine, Search
from solver.limits import Limits
from tests.solver.bounds.crossings.test_steps import HELD, UNEVEN, WHOLE, drawn, kept, v_shape
from tests.support.certified import (
    assert_proved_and_no_more,
    assert_refused_with_lower_values,
    attack_refutes,
    verdict,
)

NUMBERS, WORK = 10**7, 10**7
TIMES = {"forward": [9, 11, 10, 13, 8, 12], "backward": [10, 9, 14, 11, 12, 10], "weight": [5, 11, 8, 13, 9, 10]}
MERGING = v_shape(3, 8, 6, times=TIMES)


def no_blocks(steps: Steps) -> Numbers:
    return np.full((len(steps.ticks),) * 2, -1, np.int64)


def rests(steps: Steps) -> Remaining:
    found = remaining(steps, no_blocks(steps), NUMBERS, Event())
    assert found is not None
    return found


def load(one: Problem) -> float:
    return float(certificates(one, one.objective)[0].value)


def below(steps: Steps, value: int, width: int = 64) -> int:
    found = least_below(steps, rests(steps), width, value, WORK, Event()).ticks
    assert found is not None
    return found


def exact(steps: Steps) -> int:
    found = least_value(steps, 512, WORK, Event())
    assert found.ticks is not None and not found.merged
    return found.ticks


@pytest.mark.parametrize("seed", range(8))
def test_all_orders_end_no_sooner_whatever_the_value(seed: int) -> None:
    """Below the least end the value itself is proved; above it, the least end where nothing is merged."""
    steps = drawn(seed)._replace(microbatches=7)
    least = exact(steps)
    for value in (least // 2, least - 1, least, least + 1, least + 7, 2 * least):
        assert below(steps, value) == min(value, least)
        assert min(value, least) >= below(steps, value, 1) >= 0.8 * min(value, least)


@pytest.mark.parametrize("seed", range(4))
def test_what_remains_is_no_longer_than_any_end(seed: int) -> None:
    """From the start, and never less where more micro-batches are to come; and bound and check count the same."""
    one = v_shape(2, 6 + seed % 2, 4, times=UNEVEN, objective=("span", "makespan")[seed // 2])
    steps = kept(one, (0, 1))
    found, check = rests(steps), completions(walk_along(one, one.placement.chains[0], (), only_last=False))
    assert 0.6 * exact(steps) <= found.layers[0].rests.max() <= exact(steps)
    for own, other in zip(found.layers, check, strict=True):
        assert np.array_equal(own.keys, other.keys) and np.array_equal(own.rests, other.follows)


def test_fewer_labels_are_merged() -> None:
    """With two labels a state more is proved than all orders give with as many, of fewer labels."""
    steps = kept(MERGING, (0, 1, 2))
    plain = least_value(steps, 2, WORK, Event())
    assert plain.ticks is not None
    found = least_below(steps, rests(steps), 2, plain.ticks + 3, WORK, Event())
    assert found.ticks is not None and found.ticks > plain.ticks
    assert found.work < plain.work


def test_values_up_to_that_of_a_schedule_are_tried() -> None:
    steps = kept(MERGING, (0, 1, 2))
    least = exact(steps)
    found = [*crossing_bounds_below(MERGING, Event(), least - 100, least + 30, (1,))]
    values = [one.value for one in found]
    assert values == sorted(set(values)) and values[-1] <= least
    assert values[-1] > least_value(steps, 1, WORK, Event()).ticks  # type: ignore[operator]
    refuted = [*crossing_bounds_below(MERGING, Event(), least - 100, least - 40, (8,))]
    assert refuted[-1].value == least - 40
    assert [*crossing_bounds_below(MERGING, Event(), least, least, (8,))] == []


def test_devices_in_even_steps() -> None:
    one = v_shape(7, 4, 3, placement="linear")
    sets = [*device_sets(one, one.placement.chains[0])]
    assert sets == [(0, 1, 3, 4, 6), (0, 2, 4, 6), (0, 3, 6), (0, 6)]


def test_nothing_is_said_of_tasks_or_after_a_stop_or_with_too_much_work() -> None:
    one = v_shape(2, 8, 3)
    sent = v_shape(2, 8, 3, times=UNEVEN | {"transfer": {"time": 2, "on": "comm"}}, streams=["compute", "comm"])
    assert [*crossing_bounds_below(sent, Event(), 0, 900)] == []
    stop = Event()
    stop.set()
    assert [*crossing_bounds_below(one, stop, 0, 900)] == []
    steps = kept(one, (0, 1))
    assert remaining(steps, no_blocks(steps), NUMBERS, stop) is None
    assert [*crossing_bounds_below(one, Event(), 0, 900, work=10)] == []
    assert [*crossing_bounds_below(one, Event(), 0, 900, numbers=10)] == []
    assert remaining(steps, no_blocks(steps), 10, Event()) is None
    assert least_below(steps, rests(steps), 64, 900, 100, Event()).ticks is None
    assert remaining(steps._replace(ticks=steps.ticks * 2**26), no_blocks(steps), NUMBERS, Event()) is None
    assert remaining(steps, no_blocks(steps) + 2**26, NUMBERS, Event()) is None


@pytest.mark.parametrize("mistake", ["a rest that is longer", "what is left out ends later"])
def test_an_attack_finds_what_claims_too_much(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def longer(*given: object) -> Remaining | None:
        found = remaining(*given)  # type: ignore[arg-type]
        return (
            None
            if found is None
            else found._replace(layers=[layer._replace(rests=layer.rests + 1) for layer in found.layers])
        )

    def later(*given: object) -> Least:
        found = least_below(*given)  # type: ignore[arg-type]
        return found if found.ticks is None else found._replace(ticks=found.ticks + 1)

    name, wrong = ("remaining", longer) if mistake.startswith("a rest") else ("least_below", later)
    monkeypatch.setattr(bound, name, wrong)
    assert attack_refutes("crossings of steps below a value, V", 40)


@pytest.mark.parametrize("objective", list(Objective)[:2])
def test_the_check_proves_the_same_and_no_more(objective: Objective) -> None:
    memory = {"capacity": 4, "freed_by_backward": 0.5}
    uneven = v_shape(2, 7, 0, times=UNEVEN, memory=memory, objective=objective.value)
    bidirectional = v_shape(4, 8, 3, placement="bidirectional", objective=objective.value)
    held = v_shape(2, 7, 0, times=UNEVEN, memory=HELD, objective=objective.value)
    for one in (uneven, bidirectional, held, replace(MERGING, objective=objective)):
        found = list(crossing_bounds_below(one, Event(), 10, ceil(4 * load(one)), (1, 8)))
        assert_proved_and_no_more(one, found)
        assert_refused_with_lower_values(one, found)


def test_a_higher_value_proves_no_more_than_the_optimum() -> None:
    one = v_shape(2, 8, 3, times=WHOLE)
    assert one.in_units(Fraction(60)) == 600
    for value in (59, 60, 61, 70, 2**28):
        claim = Certificate(bound.KIND, min(value, 60), "", 0, CrossingStepsBelow(0, (0, 1), 64, value))
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
    claim = Certificate(bound.KIND, 1, "", 0, evidence)
    assert verdict(v_shape(2, 8, 3), claim) is Verdict.REFUSED


def test_a_document_without_the_value_is_refused() -> None:
    document = evidence_document(CrossingStepsBelow(0, (0, 1), 8, 500))
    del document["below"]
    with pytest.raises(BadInput, match="below"):
        evidence_from(document)


def test_the_check_does_not_begin_what_takes_too_long() -> None:
    claim = Certificate(bound.KIND, 1, "", 0, CrossingStepsBelow(0, (0, 1, 2, 3), 8, 500))
    assert verdict(v_shape(4, 40, 40), claim) is Verdict.NOT_VERIFIED
    large = v_shape(2, 8, 3, times={"forward": 10**7, "backward": 10**7 + 1})
    assert verdict(large, replace(claim, evidence=CrossingStepsBelow(0, (0, 1), 8, 500))) is Verdict.NOT_VERIFIED


def test_the_phase_raises_the_bound_of_crossings_of_steps() -> None:
    def kinds(phase: CrossingsBelow) -> list[str]:
        """Of the certificates after little work on all orders, the strongest first; 68 ticks are the optimum."""
        phases = (CrossingSteps(share=1e-5, widths=(1,)), phase)
        engine = Engine(AnalyticBounds(load_only=True), (Sequential(),), phases, finished, raise_bounds=True)
        search = Search(v_shape(3, 8, 3), Limits(workers=1, deterministic=40), lambda _: None, Event(), engine)
        search.run()
        assert not search.incumbent.state.notes
        assert search.incumbent.lower_bound <= 68
        return [one.kind for one in search.incumbent.state.certificates]

    assert kinds(CrossingsBelow(least_devices=3))[0] == bound.KIND
    for none in (CrossingsBelow(above=0.9, least_devices=3), CrossingsBelow(), CrossingsBelow(least_devices=3, near=2)):
        assert bound.KIND not in kinds(none)


def test_the_sentence() -> None:
    *_, found = crossing_bounds_below(v_shape(2, 8, 3), Event(), 40, 60)
    assert found.text == (
        "On devices 0, 1 the forwards and gradients of 4 stages of a chain take turns: a device runs one at a time, and "
        "starts a forward only while its memory has room for it; a micro-batch is away for as long as other devices take. "
        "Orders that cannot end before 550 are not followed to their end; in whichever order they run, all 8 micro-batches "
        "take at least 510."
    )
