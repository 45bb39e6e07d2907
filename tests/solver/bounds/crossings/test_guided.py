"""The bound by crossings of steps of more stages: never above all orders, guided by any of the stages, and checked."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import numpy as np
import pytest

from pipesched.checking.diagram.argument import old_form
from pipesched.checking.diagram.guide import guide_of as checked_guide
from pipesched.checking.diagram.guide import look_ahead
from pipesched.checking.diagram.walk import walk_along
from pipesched.checking.finding import Verdict
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingStages, GuidedStages
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_guided import bound
from solver.bounds.crossing_guided.bound import bounds_of_more_stages
from solver.bounds.crossing_guided.follow import least_guided
from solver.bounds.crossing_guided.guide import Guide, fewer_of, guide_of
from solver.bounds.crossing_stages.bound import KIND as OF_SOME
from solver.bounds.crossing_stages.stages import KeptStages, steps_of_stages
from solver.bounds.crossing_steps.bound import least_value
from solver.engine.final_phase import finished
from solver.engine.phases.bounds.analytic_bounds import AnalyticBounds
from solver.engine.phases.bounds.crossing_stages import CrossingsOfMoreStages as Phase
from solver.engine.phases.sequential import Sequential
from solver.engine.search import Engine, Search
from solver.limits import Limits
from tests.solver.bounds.crossings.test_stages import THIRD, WORDS
from tests.solver.bounds.crossings.test_steps import HELD, UNEVEN, v_shape
from tests.support.certified import assert_proved_and_no_more, attack_refutes, verdict

EVERY = 10**7
UNEVEN_V = v_shape(2, 7, 0, times=UNEVEN, memory=HELD)


def kept_of(stages: tuple[int, ...]) -> KeptStages:
    kept = steps_of_stages(THIRD, Paths(THIRD), THIRD.placement.chains[0], stages)
    assert kept is not None
    return kept


def all_orders(stages: tuple[int, ...], width: int = 512) -> int:
    """When the orders of some stages end at the earliest, with no label merged."""
    kept = kept_of(stages)
    every = least_value(kept.steps, width, EVERY, Event())
    assert every.ticks is not None and not every.merged
    return every.ticks + kept.beside


def test_more_stages_prove_no_more_than_all_orders() -> None:
    """The stage behind those of the device first."""
    found = [*bounds_of_more_stages(THIRD, (7, 8, 13), (WORDS, 1.05 * WORDS), Event())]
    values, kept = [one.value for one in found], [one.evidence for one in found]
    assert values == sorted(set(values)) and values[0] > WORDS
    assert all(isinstance(one, GuidedStages) and one.guide == (7, 8, 13) and 9 in one.stages for one in kept)
    assert isinstance(kept[-1], GuidedStages)
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
    kept, fewer = kept_of(stages), fewer_of(THIRD, THIRD.placement.chains[0], guide, EVERY, Event())
    assert fewer is not None
    found, least = guide_of(THIRD, kept, stages, fewer), all_orders(stages)
    for below in (least - 1, least + 1, least + 20_000, 2 * least):
        for width in (512, 1):
            ends = least_guided(kept.steps, found, width, below - kept.beside, EVERY, Event()).ticks
            assert ends is not None
            assert ends + kept.beside == min(least, below) if width > 1 else ends + kept.beside <= min(least, below)
            proved = old_form(THIRD, GuidedStages(stages, guide, width, below))
            assert proved == ends + kept.beside


def test_work_of_a_device_counts_only_where_the_guide_has_all_its_stages() -> None:
    """Stages 7 and 8 are those of one device: from what it would run of both, less may follow than of one of them."""
    stages, guide = (7, 8, 13), (7,)
    kept, fewer = kept_of(stages), fewer_of(THIRD, THIRD.placement.chains[0], guide, EVERY, Event())
    assert fewer is not None
    # No device, that of stages 7 and 8, that of stage 13: when each can start; then when each has run all.
    assert guide_of(THIRD, kept, stages, fewer).times.tolist() == [0, 1, 3, 1]
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
    kept, fewer = kept_of(stages), fewer_of(THIRD, THIRD.placement.chains[0], guide, EVERY, Event())
    assert fewer is not None
    plain = guide_of(THIRD, kept, stages, fewer)
    none = plain._replace(rests=np.full_like(plain.rests, -(2**29)))
    with_it, without = (
        least_guided(kept.steps, one, 64, all_orders(stages) - kept.beside, EVERY, Event()).work
        for one in (plain, none)
    )
    assert 5 * with_it < without


@pytest.mark.parametrize("mistake", ["a rest that is longer", "a way that is longer", "what is left out ends later"])
def test_an_attack_finds_what_claims_too_much(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def longer(*given: object) -> Guide:
        found = guide_of(*given)  # type: ignore[arg-type]
        return found._replace(rests=found.rests + 1)

    def further(*given: object) -> KeptStages | None:
        found = steps_of_stages(*given)  # type: ignore[arg-type]
        return found and found._replace(beside=found.beside + 1)

    def later(*given: object) -> object:
        found = least_guided(*given)  # type: ignore[arg-type]
        return found if found.ticks is None else found._replace(ticks=found.ticks + 1)

    name, wrong = {
        "a rest that is longer": ("guide_of", longer),
        "a way that is longer": ("steps_of_stages", further),
        "what is left out ends later": ("least_guided", later),
    }[mistake]
    monkeypatch.setattr(bound, name, wrong)
    assert attack_refutes("crossings of steps of more stages, makespan", 8)


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
    assert verdict(v_shape(2, 8, 3), Certificate(bound.KIND, 1, "", 0, evidence)) is Verdict.REFUSED


def test_a_lower_value_proves_less() -> None:
    found = [*bounds_of_more_stages(UNEVEN_V, (1, 2), (10, 400), Event(), 64)]
    assert_proved_and_no_more(UNEVEN_V, found)
    for genuine in found:
        assert isinstance(genuine.evidence, GuidedStages)
        forged = replace(genuine.evidence, below=int(genuine.value) - 1)
        assert verdict(UNEVEN_V, replace(genuine, evidence=forged)) is Verdict.REFUSED


def test_nothing_is_said_of_tasks_and_blocks_or_after_a_stop_or_with_too_much_work() -> None:
    one = v_shape(2, 8, 3)
    sent = v_shape(2, 8, 3, times=UNEVEN | {"transfer": {"time": 2, "on": "comm"}}, streams=["compute", "comm"])
    blocks = v_shape(2, 8, 3, times={"forward": 2, "backward": 4, "overlapped": 5})
    assert [*bounds_of_more_stages(one, (1, 2), (0, 900), Event())]
    assert [*bounds_of_more_stages(sent, (1, 2), (0, 900), Event())] == []
    assert [*bounds_of_more_stages(blocks, (1, 2), (0, 900), Event())] == []
    assert [*bounds_of_more_stages(one, (0, 1, 2, 3), (0, 900), Event())] == []
    stop = Event()
    stop.set()
    assert [*bounds_of_more_stages(one, (1, 2), (0, 900), stop)] == []
    assert [*bounds_of_more_stages(one, (1, 2), (0, 900), Event(), work=10)] == []
    assert [*bounds_of_more_stages(one, (1, 2), (0, 900), Event(), numbers=10)] == []
    claim = Certificate(bound.KIND, 1, "", 0, GuidedStages((0, 1), (1,), 8, 5000))
    assert verdict(blocks, claim) is Verdict.NOT_VERIFIED


class Little:
    """A phase that proves less than all orders of these stages."""

    name = "little"

    def applies(self, _: Search) -> bool:
        return True

    def run(self, search: Search) -> None:
        search.incumbent.argue(Certificate(OF_SOME, 1_200_000, "", 7, CrossingStages((7, 8, 13), 64, 1_200_000)))


def test_the_phase_follows_crossings_of_some_stages() -> None:
    def kinds(*phases: Phase | Little) -> list[str]:
        engine = Engine(AnalyticBounds(), (Sequential(),), phases, finished, raise_bounds=True)
        search = Search(THIRD, Limits(workers=1, deterministic=10), lambda _: None, Event(), engine)
        search.run()
        assert not search.incumbent.state.notes
        return [one.kind for one in search.incumbent.state.certificates]

    assert bound.KIND not in kinds(Phase())
    assert kinds(Little(), Phase())[:2] == [bound.KIND, OF_SOME]
    assert bound.KIND not in kinds(Little(), Phase(above=0.95))


def test_the_sentence() -> None:
    *_, found = bounds_of_more_stages(v_shape(2, 8, 3), (1, 2), (40, 60), Event())
    assert found.text == (
        "The forwards and gradients of stages 1, 2, 3 take turns on devices 1, 0: a device starts one of these forwards only "
        "while its memory has room for it besides others of these; a micro-batch is away for as long as all other stages "
        "take. Orders of which those of stages 1, 2 alone show that they cannot end before 520 are not followed to their "
        "end; in whichever order they run, all 8 micro-batches take at least 500."
    )
