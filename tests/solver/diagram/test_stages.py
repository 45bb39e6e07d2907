"""Diagrams of some stages: never above all orders, more than one device says, and checked."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from threading import Event

import numpy as np
import pytest

from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Objective
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingStages
from pipesched.results.diagram_evidence import Diagram
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram import below as bound
from solver.diagram import values as tried
from solver.diagram.below import bounds_of_stages
from solver.diagram.certificate import KIND
from solver.diagram.follow import least_end
from solver.diagram.steps import Kept, kept_stages
from solver.engine.finish import finished
from solver.engine.opening.analytic_bounds import AnalyticBounds
from solver.engine.opening.sequential import Sequential
from solver.engine.parts.bounds.below import BelowOnStages
from solver.engine.run import run
from solver.engine.search import Engine, Search
from solver.limits import Limits
from tests.solver.diagram.test_all_orders import HELD, UNEVEN, v_shape
from tests.support.certified import assert_proved_and_no_more, attack_refutes, verdict

# A third of the memory that the published schedules take, and times as measured (v-6.2b), with half of the devices.
TIMES = {"forward": 14.407, "backward": 14.38, "weight": 9.676, "transfer": 1.61}
THIRD = v_shape(8, 8, 6, times=TIMES)
WORDS = float(certificates(THIRD, THIRD.objective)[0].value)


def test_one_stage_more_proves_more_than_one_device() -> None:
    """All orders of the kept stages of eight devices, without a label merged, end no sooner."""
    found = [*bounds_of_stages(THIRD, Event(), WORDS, 1.05 * WORDS, 7)]
    values = [one.value for one in found]
    assert values == sorted(set(values)) and values[0] > WORDS
    last = found[-1].evidence
    assert isinstance(last, Diagram) and {7, 8} < set(last.stages) <= set(range(7, 16))
    kept = kept_stages(THIRD, Paths(THIRD), THIRD.placement.chains[0], last.stages)
    assert kept is not None
    every = least_end(kept.steps, 512, 10**7, Event())
    assert every.ticks is not None and not every.merged
    assert values[-1] == every.ticks + kept.beside > 1.01 * WORDS
    assert_proved_and_no_more(THIRD, found[-1:])


def test_other_stages_are_delays() -> None:
    """Steps of two stages start when those of all do, and nothing on a device before the others counts."""
    one = v_shape(2, 6, 0, times=UNEVEN, memory=HELD)
    chain, paths = one.placement.chains[0], Paths(one)
    every, two = kept_stages(one, paths, chain, chain), kept_stages(one, paths, chain, (1, 3))
    assert every is not None and two is not None and every.beside == 0
    ends = np.cumsum(every.steps.lag + every.steps.ticks)
    assert np.array_equal(np.cumsum(two.steps.lag + two.steps.ticks) + paths.head[1], ends[[1, 3, 4, 6]])
    assert two.beside == paths.head[1] + paths.gradient[1] + paths.tail(1)
    assert two.steps.device.min() == 1 and two.steps.room[0] == -1 and (two.steps.reach[:, 0] == -1).all()


@pytest.mark.parametrize("mistake", ["a rest that is longer", "a way that is longer", "what is left out ends later"])
def test_an_attack_finds_what_claims_too_much(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {"completion": bound.completion, "least_end": tried.least_end, "kept_stages": bound.kept_stages}

    def longer(*given: object) -> object:
        found = plain["completion"](*given)
        return found and [one._replace(rests=one.rests + 1) for one in found]

    def later(*given: object) -> object:
        found = plain["least_end"](*given)
        return found if found.ticks is None else found._replace(ticks=found.ticks + 1)

    def further(*given: object) -> Kept | None:
        found = kept_stages(*given)  # type: ignore[arg-type]
        return found and found._replace(beside=found.beside + 1)

    where, name, wrong = {
        "a rest that is longer": (bound, "completion", longer),
        "a way that is longer": (bound, "kept_stages", further),
        "what is left out ends later": (tried, "least_end", later),
    }[mistake]
    monkeypatch.setattr(where, name, wrong)
    assert attack_refutes("crossings of steps of some stages, makespan", 8)


@pytest.mark.parametrize("objective", list(Objective)[:2])
def test_the_check_proves_the_same_and_no_more(objective: Objective) -> None:
    memory = {"capacity": 4, "freed_by_backward": 0.5}
    uneven = v_shape(2, 7, 0, times=UNEVEN, memory=memory, objective=objective.value)
    held = v_shape(2, 7, 0, times=UNEVEN, memory=HELD, objective=objective.value)
    both = v_shape(4, 8, 3, placement="bidirectional", objective=objective.value)
    blocks = {"forward": 2, "backward": 4, "overlapped": 5}
    in_blocks = v_shape(2, 6, 3, times=blocks, objective=objective.value)
    for one in (uneven, held, both, in_blocks):
        known = ceil(4 * float(certificates(one, one.objective)[0].value))
        found = [
            each
            for device in (0, 1)
            for width in (1, 64)
            for each in bounds_of_stages(one, Event(), 10, known, device, width)
        ]
        assert_proved_and_no_more(one, found)
        for genuine in found:
            assert isinstance(genuine.evidence, Diagram)
            forged = replace(genuine.evidence, below=int(genuine.value) - 1)
            assert verdict(one, replace(genuine, evidence=forged)) is Verdict.REFUSED


@pytest.mark.parametrize(
    "evidence",
    [
        CrossingStages((), 8, 500),
        CrossingStages((1, 0), 8, 500),
        CrossingStages((1, 1), 8, 500),
        CrossingStages((-1, 1), 8, 500),
        CrossingStages((0, 4), 8, 500),
        CrossingStages((0, 1), 0, 500),
        CrossingStages((1, 2), 8, 1),
    ],
)
def test_evidence_of_no_stages_is_refused(evidence: CrossingStages) -> None:
    assert verdict(v_shape(2, 8, 3), Certificate(CrossingStages.form, 1, "", 0, evidence)) is Verdict.REFUSED


def test_nothing_is_said_of_tasks_or_after_a_stop_or_with_too_much_work() -> None:
    one = v_shape(2, 8, 3)
    sent = v_shape(2, 8, 3, times=UNEVEN | {"transfer": {"time": 2, "on": "comm"}}, streams=["compute", "comm"])
    assert [*bounds_of_stages(one, Event(), 0, 900, 0)]
    assert [*bounds_of_stages(sent, Event(), 0, 900, 0)] == []
    stop = Event()
    stop.set()
    assert [*bounds_of_stages(one, stop, 0, 900, 0)] == []
    assert [*bounds_of_stages(one, Event(), 0, 900, 0, work=10)] == []
    assert [*bounds_of_stages(one, Event(), 0, 900, 0, numbers=10)] == []
    long = v_shape(2, 8, 3, times={"forward": 10**10, "backward": 10**10 + 0.0001})
    assert kept_stages(long, Paths(long), (0, 1, 2, 3), (0, 3)) is None
    claim = Certificate(CrossingStages.form, 1, "", 0, CrossingStages(tuple(range(8)), 8, 5000))
    assert verdict(v_shape(4, 40, 40), claim) is Verdict.NOT_VERIFIED


def test_a_search_by_it_alone_raises_what_words_say_of_one_device() -> None:
    engine = Engine(AnalyticBounds(), (Sequential(),), (BelowOnStages(),), finished)
    search = Search(THIRD, Limits(workers=1, deterministic=10), lambda _: None, Event(), engine)
    run(search)
    assert not search.incumbent.state.notes
    assert search.incumbent.state.certificates[0].kind == KIND


def test_the_sentence() -> None:
    *_, found = bounds_of_stages(v_shape(2, 8, 3), Event(), 40, 60, 1)
    assert found.text == (
        "The forwards and gradients of stages 1, 2, 3 take turns on devices 1, 0: a device starts one of these forwards only "
        "while its memory has room for it besides others of these; a micro-batch is away for as long as other stages "
        "take. Orders that cannot end before 550 are not followed to their end. In whichever order they run, all 8 "
        "micro-batches take at least 500."
    )
