"""Diagrams of more stages: never above all orders, guided by any of the stages, and checked."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from threading import Event

import numpy as np
import pytest

from benchmarks.proofs.exhaustive.optimum import least_value
from pipesched.checking.diagram.argument import old_form
from pipesched.checking.diagram.guide import guide_of as checked_guide
from pipesched.checking.diagram.guide import look_ahead
from pipesched.checking.diagram.walk import walk_along
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Objective
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import GuidedStages
from pipesched.results.diagram_evidence import Diagram
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram import below as bound
from solver.diagram import values as tried
from solver.diagram.below import Guiding, bounds_of_more_stages
from solver.diagram.certificate import KIND
from solver.diagram.completion import completion
from solver.diagram.follow import least_end
from solver.diagram.guide import Guide, guide_of
from solver.diagram.steps import Kept, kept_stages
from solver.engine.finish import finished
from solver.engine.opening.analytic_bounds import AnalyticBounds
from solver.engine.opening.sequential import Sequential
from solver.engine.parts.bounds.below import BelowOnStages
from solver.engine.run import run
from solver.engine.search import Engine, Search
from solver.limits import Limits
from tests.solver.diagram.test_all_orders import HELD, UNEVEN, v_shape
from tests.solver.diagram.test_stages import THIRD, WORDS
from tests.support.certified import assert_proved_and_no_more, attack_refutes, verdict

EVERY = 10**7
UNEVEN_V = v_shape(2, 7, 0, times=UNEVEN, memory=HELD)


def kept_of(stages: tuple[int, ...]) -> Kept:
    kept = kept_stages(THIRD, Paths(THIRD), THIRD.placement.chains[0], stages)
    assert kept is not None
    return kept


def guiding(stages: tuple[int, ...]) -> Guiding:
    kept = kept_of(stages)
    rest = completion(kept.steps, EVERY, Event())
    assert rest is not None
    return Guiding(kept, rest)


def all_orders(stages: tuple[int, ...], width: int = 512) -> int:
    """When the orders of some stages end at the earliest, with no label merged."""
    kept = kept_of(stages)
    every = least_end(kept.steps, width, EVERY, Event())
    assert every.ticks is not None and not every.merged
    return every.ticks + kept.beside


def test_more_stages_prove_no_more_than_all_orders() -> None:
    """The stage behind those of the device first."""
    found = [*bounds_of_more_stages(THIRD, Event(), WORDS, 1.05 * WORDS, (7, 8, 13))]
    values, kept = [one.value for one in found], [one.evidence for one in found]
    assert values == sorted(set(values)) and values[0] > WORDS
    assert all(isinstance(one, Diagram) and one.guide == (7, 8, 13) and 9 in one.stages for one in kept)
    assert isinstance(kept[-1], Diagram)
    assert values[-1] <= all_orders(kept[-1].stages)
    assert_proved_and_no_more(THIRD, found[-1:])


@pytest.mark.parametrize(
    ("guide", "stages"),
    [
        ((7, 8, 13), (7, 8, 9, 13)),
        ((7, 8, 13), (3, 4, 7, 8, 13)),  # gradients of two stages follow the last one of the guide
        ((7,), (7, 8, 13)),  # the guide has one of two stages of a device
        ((8, 13), (3, 8, 13)),
        ((3, 8), (3, 7, 8)),
        ((7, 8, 13), (7, 8, 13)),
    ],
)
def test_no_order_is_left_out_that_ends_below_the_value(guide: tuple[int, ...], stages: tuple[int, ...]) -> None:
    """Below any value more than the least end that end is found, and the check finds it too."""
    kept, fewer = kept_of(stages), guiding(guide)
    found, least = guide_of(THIRD, kept, *fewer), all_orders(stages)
    for below in (least - 1, least + 1, least + 20_000, 2 * least):
        for width in (512, 1):
            ends = least_end(kept.steps, width, EVERY, Event(), found, below - kept.beside).ticks
            assert ends is not None
            assert ends + kept.beside == min(least, below) if width > 1 else ends + kept.beside <= min(least, below)
            proved = old_form(THIRD, GuidedStages(stages, guide, width, below))
            assert proved == ends + kept.beside


def test_work_of_a_device_counts_only_where_the_guide_has_all_its_stages() -> None:
    """Stages 7 and 8 are those of one device: from what it would run of both, less may follow than of one of them."""
    stages, guide = (7, 8, 13), (7,)
    kept, fewer = kept_of(stages), guiding(guide)
    # No device, that of stages 7 and 8, that of stage 13: when each can start; then when each has run all.
    assert guide_of(THIRD, kept, *fewer).times.tolist() == [0, 1, 3, 1]
    way, small = (walk_along(THIRD, one, (), only_last=True) for one in (stages, guide))
    sight = checked_guide(THIRD, way, small, stages, guide)
    assert (sight.columns - way.steps.admitted).tolist() == [0, 1, 3, 1]
    follows = np.zeros_like(sight.follows)
    follows[:, sight.admitted :] = [3, 9, 4, 5]
    seen, comes = np.zeros(way.steps.admitted + 6, np.int64), np.array([1] + (way.steps.admitted - 1) * [0])
    assert look_ahead(seen, np.array([1, 0, 0, 0, 0, 0]), comes[:1], way.steps, sight._replace(follows=follows))
    assert (seen[way.steps.admitted :][[0, 1, 3]] + sight.sooner).tolist() == [3, 9, 4]


def test_a_guide_leaves_orders_out() -> None:
    """With what remains set to nothing, more labels are looked at."""
    stages, guide = (7, 8, 9, 13), (7, 8, 13)
    kept, fewer = kept_of(stages), guiding(guide)
    plain = guide_of(THIRD, kept, *fewer)
    none = plain._replace(rests=np.full_like(plain.rests, -(2**29)))
    with_it, without = (
        least_end(kept.steps, 64, EVERY, Event(), one, all_orders(stages) - kept.beside).work for one in (plain, none)
    )
    assert 5 * with_it < without


@pytest.mark.parametrize("mistake", ["a rest that is longer", "a way that is longer", "what is left out ends later"])
def test_an_attack_finds_what_claims_too_much(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def longer(*given: object) -> Guide:
        found = guide_of(*given)  # type: ignore[arg-type]
        return found._replace(rests=found.rests + 1)

    def further(*given: object) -> Kept | None:
        found = kept_stages(*given)  # type: ignore[arg-type]
        return found and found._replace(beside=found.beside + 1)

    def later(*given: object) -> object:
        found = least_end(*given)  # type: ignore[arg-type]
        return found if found.ticks is None else found._replace(ticks=found.ticks + 1)

    where, name, wrong = {
        "a rest that is longer": (bound, "guide_of", longer),
        "a way that is longer": (bound, "kept_stages", further),
        "what is left out ends later": (tried, "least_end", later),
    }[mistake]
    monkeypatch.setattr(where, name, wrong)
    assert attack_refutes("crossings of steps of more stages, makespan", 30)


@pytest.mark.parametrize(
    "evidence",
    [
        GuidedStages((), (), 8, 500),
        GuidedStages((0, 1), (), 8, 500),
        GuidedStages((0, 1), (2,), 8, 500),
        GuidedStages((1, 0), (1,), 8, 500),
        GuidedStages((0, 1, 2), (1, 0), 8, 500),
        GuidedStages((0, 1), (0,), 0, 500),
        GuidedStages((1, 2), (1,), 8, 1),
    ],
)
def test_evidence_of_no_guide_is_refused(evidence: GuidedStages) -> None:
    assert verdict(v_shape(2, 8, 3), Certificate(GuidedStages.form, 1, "", 0, evidence)) is Verdict.REFUSED


def test_a_lower_value_proves_less() -> None:
    found = [*bounds_of_more_stages(UNEVEN_V, Event(), 10, 400, (1, 2), 64)]
    assert_proved_and_no_more(UNEVEN_V, found)
    for genuine in found:
        assert isinstance(genuine.evidence, Diagram)
        forged = replace(genuine.evidence, below=int(genuine.value) - 1)
        assert verdict(UNEVEN_V, replace(genuine, evidence=forged)) is Verdict.REFUSED


def test_nothing_is_said_of_tasks_or_after_a_stop_or_with_too_much_work() -> None:
    one = v_shape(2, 8, 3)
    sent = v_shape(2, 8, 3, times=UNEVEN | {"transfer": {"time": 2, "on": "comm"}}, streams=["compute", "comm"])
    blocks = v_shape(2, 8, 3, times={"forward": 2, "backward": 4, "overlapped": 5})
    assert [*bounds_of_more_stages(one, Event(), 0, 900, (1, 2))]
    assert [*bounds_of_more_stages(sent, Event(), 0, 900, (1, 2))] == []
    assert [*bounds_of_more_stages(one, Event(), 0, 900, (0, 1, 2, 3))] == []
    stop = Event()
    stop.set()
    assert [*bounds_of_more_stages(one, stop, 0, 900, (1, 2))] == []
    assert [*bounds_of_more_stages(one, Event(), 0, 900, (1, 2), work=10)] == []
    assert [*bounds_of_more_stages(one, Event(), 0, 900, (1, 2), numbers=10)] == []
    claim = Certificate(GuidedStages.form, 1, "", 0, GuidedStages((0, 1), (1,), 8, 5000))
    assert verdict(blocks, claim) is Verdict.NOT_VERIFIED


class Little:
    """An opening that proves less than all orders of these stages."""

    name = "little"

    def applies(self, _: Search) -> bool:
        return True

    def run(self, search: Search) -> None:
        some = Diagram((7, 8, 13), 64, 1_200_000, (7, 8, 13))
        search.incumbent.argue(Certificate(KIND, 1_200_000, "", 7, some))


def test_stages_that_gave_the_bound_guide_more() -> None:
    engine = Engine(AnalyticBounds(), (Sequential(), Little()), (BelowOnStages(),), finished)
    search = Search(THIRD, Limits(workers=1, deterministic=10), lambda _: None, Event(), engine)
    run(search)
    assert not search.incumbent.state.notes
    found = [one.evidence for one in search.incumbent.state.certificates]
    assert max(len(one.stages) for one in found if isinstance(one, Diagram)) > 3


@pytest.mark.parametrize("seed", range(4))
def test_with_blocks_they_prove_no_more_than_schedules_take(seed: int) -> None:
    """In blocks of kept stages and others; and the check proves the same."""
    random = Random(seed)
    times = {name: [random.randint(2, 9) for _ in range(4)] for name in ("forward", "backward")}
    longer = [a + b - random.randint(0, 3) for a, b in zip(*times.values(), strict=True)]
    one = v_shape(2, 2, random.choice((2, 3, 4)), times=times | {"overlapped": longer}, objective="makespan")
    least = least_value(one, Objective.MAKESPAN, 10**6)
    assert least is not None
    found = [
        each
        for guide in ((0,), (1,), (1, 2), (0, 3))
        for each in bounds_of_more_stages(one, Event(), 5, 2 * float(least), guide, 8)
    ]
    assert_proved_and_no_more(one, found)
    assert max(each.value for each in found) <= least


def test_the_sentence() -> None:
    *_, found = bounds_of_more_stages(v_shape(2, 8, 3), Event(), 40, 60, (1, 2))
    assert found.text.startswith("The forwards and gradients of stages 1, 2, 3 take turns on devices 1, 0: ")
    assert "Orders of which stages 1, 2 show that they cannot end before " in found.text
