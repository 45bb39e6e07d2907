"""Bounds by decision diagrams: exact on small problems, proved by the check and no more, silent where they know nothing.

That none is above the optimum is the matter of `tests/benchmarks/test_bound_attack.py`, of each option by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import islice, pairwise
from math import ceil
from threading import Event
from typing import Any

import pytest

from pipesched.checking.check import check_bound
from pipesched.checking.diagram.argument import decision_diagram
from pipesched.checking.finding import Verdict
from pipesched.files.problem_file import problem_from
from pipesched.problem import placement
from pipesched.problem.objective import objectives
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import UnknownForm
from pipesched.results.evidence_document import evidence_document, evidence_from
from pipesched.results.solution import Progress
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram import by_device, threshold_search
from solver.diagram.all_orders import bounds_of_all_orders
from solver.diagram.by_device import bounds_by_device
from solver.diagram.certificate import KIND
from solver.diagram.completion import completion
from solver.diagram.device_sets import in_even_steps
from solver.diagram.layers import Least
from solver.diagram.modelled_stages import owner_of, stages_on
from solver.diagram.modelled_steps import modelled_steps
from solver.diagram.models import chain_steps
from solver.diagram.models.chain_steps import least_end
from solver.diagram.projected_completion import SmallerDiagram, projected_completions
from solver.diagram.steps import ModelledSteps
from solver.diagram.threshold_bounds import bounds_of_devices, bounds_of_more_stages, bounds_of_stages
from solver.diagram.threshold_search import ThresholdSearch
from solver.engine.analytic_bounds import AnalyticBounds
from solver.engine.construction.sequential import Sequential
from solver.engine.finish import finished
from solver.engine.run import run
from solver.engine.search import Engine, Search
from solver.engine.subsolvers.bounds.thresholds import ThresholdsOnDevices, ThresholdsOnStages
from solver.solve import solve
from tests.support.certified import assert_proved_and_no_more, verdict
from tests.support.columns import Costs, Memory, build
from tests.support.counted import counted
from tests.support.diagrams import (
    BLOCKS,
    EVEN,
    FREED,
    LONG,
    LONGER,
    UNEVEN,
    UNEVEN_BLOCKS,
    UNEVEN_MEMORY,
    WHOLE,
    bidirectional,
    of_tasks,
    v_shape,
)

Ask = Callable[..., Iterator[Certificate]]
EVERY = 10**7
BLOCK, LINE, INTERLEAVED = EVEN | BLOCKS, {"placement": "linear"}, {"placement": "interleaved", "chunks": 2}
WHOLE_BLOCK = WHOLE | BLOCKS
SPLIT = {"times": EVEN}
makespan = partial(v_shape, objective="makespan")
MERGING = v_shape(3, 8, 6, times=LONGER)
IN_BLOCKS = makespan(3, 6, 4, times=LONGER | LONG)
# A third of the memory that the published schedules take, and times as measured (v-6.2b), with half of the devices.
THIRD = v_shape(8, 8, 6, times={"forward": 14.407, "backward": 14.38, "weight": 9.676, "transfer": 1.61})


def in_words(one: Problem) -> float:
    """What the best analytic bound proves, in ticks."""
    return float(certificates(one, one.objective)[0].value_ticks)


def above(ask: Ask, *which: Any) -> Ask:
    """A bound below a value: from nothing on to what no schedule needs, of devices or stages where it asks for them."""

    def found(one: Problem, stop: Event, width: int = 64, proved: float = 10, **limits: int) -> Iterator[Certificate]:
        open_ticks = proved, ceil(4 * in_words(one))
        return ask(ThresholdSearch(one, stop, lambda: open_ticks, width, **limits), *which)

    return found


# Each bound by how it is asked for with so many labels of a state.
BOUNDS: dict[str, Ask] = {
    "all orders": bounds_of_all_orders,
    "below a value": above(bounds_of_devices),
    "some stages": above(bounds_of_stages, 0),
    "more stages": above(bounds_of_more_stages, (1, 2)),
    "by device": above(bounds_by_device),
}


def every(name: str, one: Problem, **limits: Any) -> list[Certificate]:
    return list(BOUNDS[name](one, Event(), **limits))


def best(name: str, one: Problem) -> Fraction:
    return one.in_units(Fraction(max(each.value_ticks for each in every(name, one))))


@pytest.mark.parametrize(
    ("name", "one", "optimum"),
    [
        ("all orders", v_shape(2, 8, 3), 510),
        ("all orders", v_shape(2, 8, 3, times=WHOLE), 600),
        ("all orders", v_shape(3, 8, 3), 680),
        ("all orders", v_shape(2, 6, 4, times=WHOLE, placement=[0, 1, 1, 0, 0, 1]), 690),
        ("all orders", v_shape(2, 6, 3, times=WHOLE, **INTERLEAVED), 460),
        ("all orders", makespan(2, 4, 4, times=BLOCK), 236),
        ("all orders", makespan(3, 5, 6, times=BLOCK), 304),
        ("all orders", makespan(3, 5, 5, times=WHOLE_BLOCK), 384),
        ("below a value", v_shape(2, 6, 3, times=BLOCK), 390),
        ("below a value", makespan(2, 6, 3, times=WHOLE_BLOCK), 460),
        ("below a value", v_shape(3, 6, 2, times=BLOCK, **LINE), 250),
        ("below a value", makespan(3, 6, 2, times=WHOLE_BLOCK, **LINE), 300),
        ("by device", bidirectional(2, 8, 2), 222),
        ("by device", bidirectional(2, 4, 1, **SPLIT), 170),
        ("by device", bidirectional(2, 4, 1, "span", **SPLIT), 160),
    ],
)
def test_the_optimum_of_small_problems_that_no_argument_in_words_proves(name: str, one: Problem, optimum: int) -> None:
    """A solve finds schedules with these values, but of the last two."""
    assert best(name, one) == optimum > one.in_units(Fraction(in_words(one)))


@pytest.mark.parametrize("one", [v_shape(2, 8, 3), v_shape(2, 6, 3, times=BLOCK), bidirectional(2, 8, 2)])
def test_a_solve_proves_with_it_what_no_argument_in_words_does(one: Problem) -> None:
    found = solve(one, counted(2.0))
    assert found.lower_bound_ticks == found.value_ticks
    assert found.certificate is not None and isinstance(found.certificate.evidence, Diagram)


def _first_and_best(found: list[Certificate]) -> list[Certificate]:
    return [found[0], found[-1]] if len(found) > 1 else found


@pytest.mark.parametrize("objective", objectives()[:2])
@pytest.mark.parametrize("name", BOUNDS)
def test_the_check_proves_the_same_and_no_more(name: str, objective: Objective) -> None:
    """Nor anything with a value to stay below that is less: orders that end there or later are not followed."""
    of_one_chain = [
        *(v_shape(2, 5, 0, times=UNEVEN, **memory) for memory in (FREED, UNEVEN_MEMORY)),
        v_shape(2, 4, 0, times=UNEVEN_BLOCKS, **FREED),
        v_shape(4, 4, 2, placement="bidirectional"),
    ]
    longer = {key: ticks[:3] for key, ticks in UNEVEN_BLOCKS.items() if isinstance(ticks, list)}
    of_two = [bidirectional(2, 6, 2), bidirectional(2, 4, 1, **SPLIT), bidirectional(3, 4, 2, times=longer)]
    of_two += [bidirectional(2, 4, 2, times=WHOLE_BLOCK), bidirectional(2, 4, 2, memory=FREED["memory"])]
    more = {
        "all orders": [replace(of_one_chain[0], microbatches=120)],
        "below a value": [replace(MERGING, microbatches=4)],
    }
    for one in [*(of_two if name == "by device" else of_one_chain[1:]), of_one_chain[0], *more.get(name, [])]:
        posed = replace(one, objective=objective)
        found = [each for width in (1, 8) for each in _first_and_best(every(name, posed, width=width))]
        assert_proved_and_no_more(posed, found)
        for genuine in found:
            evidence: Any = genuine.evidence
            assert f"at least {posed.in_units(Fraction(genuine.value_ticks))}".rstrip(".0") in genuine.text
            if evidence.below is not None:
                forged = replace(genuine, evidence=replace(evidence, below=int(genuine.value_ticks) - 1))
                assert verdict(posed, forged) is Verdict.REFUSED


@pytest.mark.parametrize("one", [v_shape(3, 6, 3), v_shape(4, 6, 4, times=WHOLE, objective="makespan"), MERGING])
@pytest.mark.parametrize("width", [1, 64])
def test_the_value_known_is_tried_at_once_and_lower_ones_only_where_labels_were_merged(
    one: Problem, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each set of devices; what is proved is no less than by raising thresholds alone, and as much where exact."""
    known, tried = ceil(4 * in_words(one)), list[tuple[int, bool]]()
    genuine = threshold_search.least_end

    def watched(*given: Any, **more: Any) -> Least:
        found = genuine(*given, **more)
        if "reached" not in more:
            tried.append((given[5], found.merged))
        return found

    monkeypatch.setattr(threshold_search, "least_end", watched)
    at_once = max(each.value_ticks for each in every("by device", one, width=width))
    after = [now for before, now in pairwise(tried) if before[0] == known and not before[1]]
    assert known in [value for value, _ in tried]
    if width > 1 and one is not MERGING:
        assert [value for value, _ in after] == [known] * len(after)
    monkeypatch.setattr(by_device, "_AT_ONCE", 0)
    monkeypatch.setattr(by_device, "_TIMES_AS_MANY", 0)
    assert at_once >= max(each.value_ticks for each in every("by device", one, width=width))


@pytest.mark.parametrize("name", BOUNDS)
def test_nothing_is_said_of_tasks_or_after_a_stop_or_with_too_much_work(name: str) -> None:
    one = v_shape(2, 8, 3)
    stop = Event()
    stop.set()
    assert every(name, one)
    assert list(BOUNDS[name](one, stop)) == []
    assert every(name, of_tasks(one)) == []
    assert every(name, one, work=3) == []
    if name != "all orders":
        assert every(name, one, numbers=10) == []
    if name != "all orders":
        assert every(name, one, proved=EVERY) == []
    if name == "by device":
        assert every(name, replace(one, objective=Objective.PERIOD)) == []


LONG_CHECKS = (
    (v_shape(4, 40, 40), Diagram(tuple(range(8)), 8)),
    (v_shape(4, 40, 40, times=BLOCK), Diagram(tuple(range(8)), 8)),
    (v_shape(4, 40, 40), Diagram(tuple(range(8)), 8, 500, tuple(range(8)), device=0)),
)


def test_the_check_does_not_begin_what_takes_too_long_or_has_tasks() -> None:
    for one, evidence in LONG_CHECKS:
        assert verdict(one, Certificate(KIND, 1, "", 0, evidence)) is Verdict.NOT_VERIFIED
    few = Certificate(KIND, 1, "", 0, Diagram((0, 1, 2, 3), 8))
    of_two = Certificate(KIND, 1, "", 0, Diagram((0, 3), 8, 500, (0, 3)))
    for one, claim in ((v_shape(2, 4, 4, times=BLOCK), few), (bidirectional(2, 4, 2), of_two)):
        assert verdict(one, claim) is Verdict.VERIFIED
        assert verdict(of_tasks(one), claim) is Verdict.NOT_VERIFIED
    assert verdict(bidirectional(2, 4, 2, "period"), of_two) is Verdict.NOT_VERIFIED


def test_evidence_with_an_option_of_another_version_is_not_verified() -> None:
    """Those from before a span had a device say another one's value."""
    document = evidence_document(Diagram((0, 1, 2, 3), 8))
    older = {key: value for key, value in document.items() if key != "device"}
    for other, key in ((document | {"blocks": True}, "blocks"), (older, "device")):
        read = evidence_from(other)
        assert isinstance(read, UnknownForm) and key in str(read)
        assert verdict(v_shape(2, 4, 4), Certificate(KIND, 1, "", 0, read)) is Verdict.NOT_VERIFIED


# What is looked at by all these bounds: orders of kept steps, followed to their end or to a value.


def kept(one: Problem, devices: tuple[int, ...] = (), stages: tuple[int, ...] = ()) -> ModelledSteps:
    """Of the first chain."""
    chain = one.placement.chains[0]
    held = stages or stages_on(one, chain, devices)
    found = modelled_steps(one, Paths(one), held, owner_of(one, chain, held))
    assert found is not None
    return found


def on_all(one: Problem, *devices: int) -> ModelledSteps:
    """Of all chains; of a span that of the first device counts."""
    held = [stage for chain in one.placement.chains for stage in stages_on(one, chain, devices)]
    found = modelled_steps(one, Paths(one), held, devices[0] if one.objective == Objective.SPAN else None)
    assert found is not None
    return found


def guiding(one: ModelledSteps) -> SmallerDiagram:
    found = completion(one.steps, EVERY, Event())
    assert found is not None
    return SmallerDiagram(one, found)


def plain(one: Problem, kept: ModelledSteps, width: int = 512, work: int = EVERY, **how: int) -> Least:
    """Of all orders."""
    return least_end(kept.steps, width, work, Event(), projected_completions(one, kept, ()), **how)


def exact(one: Problem, kept: ModelledSteps) -> int:
    """When these orders end at the earliest, with no label merged."""
    found = plain(one, kept)
    assert found.ticks is not None and not found.merged
    return found.ticks


def end(one: Problem, kept: ModelledSteps, value: int, width: int = 64, guide: ModelledSteps | None = None) -> Least:
    """Below a value, guided by the same stages or fewer."""
    guides = projected_completions(one, kept, [guiding(guide or kept)])
    return least_end(kept.steps, width, EVERY, Event(), guides, value)


@pytest.mark.parametrize(
    "one",
    [
        v_shape(2, 7, 0, times=UNEVEN, **UNEVEN_MEMORY),
        makespan(2, 6, 3, times=WHOLE),
        makespan(2, 7, 4, times=UNEVEN),
        makespan(2, 5, 4, times=UNEVEN_BLOCKS),
        v_shape(2, 5, 3, times=WHOLE_BLOCK),
        makespan(3, 5, 2, times=WHOLE_BLOCK, **LINE),
        makespan(4, 8, 3, times=BLOCK, placement="bidirectional"),
    ],
)
def test_all_orders_end_no_sooner_whatever_the_value(one: Problem) -> None:
    """Below the least end the value itself is proved; above it, the least end where nothing is merged."""
    steps = kept(one, (0, 1))
    least = exact(one, steps)
    for value in (least // 2, least - 1, least, least + 1, least + 7, 2 * least):
        assert end(one, steps, value).ticks == min(value, least)
        assert min(value, least) >= (end(one, steps, value, 1).ticks or 0) >= 0.8 * min(value, least)


@pytest.mark.parametrize(
    ("guide", "stages"),
    [
        ((7, 8, 13), (7, 8, 9, 13)),
        ((7, 8, 13), (3, 4, 7, 8, 13)),  # gradients of two stages follow the last one of the guide
        ((7,), (7, 8, 13)),  # the guide has one of two stages of a device
        ((8, 13), (3, 8, 13)),
        ((3, 8), (3, 7, 8)),
    ],
)
def test_no_order_is_left_out_that_ends_below_the_value(guide: tuple[int, ...], stages: tuple[int, ...]) -> None:
    """Below any value more than the least end that end is found, and the check finds it too."""
    steps, fewer = kept(THIRD, stages=stages), kept(THIRD, stages=guide)
    least = exact(THIRD, steps)
    for value in (least - 1, least + 1, least + 20_000, 2 * least):
        for width in (512, 1):
            found = end(THIRD, steps, value, width, fewer).ticks
            assert found is not None
            assert found == min(least, value) if width > 1 else found <= min(least, value)
            assert decision_diagram(THIRD, Diagram(stages, width, value, guide)) == found


# The last device of this one has most left to run when the oldest micro-batch ends: its gradient waits for nothing.
_LAST_LEFT = Costs((62,) * 4, (11, 11, 11, 10), None, (11, 11, 11, 10), (0,) * 4, overlapped=(63, 62, 62, 54))


@pytest.mark.parametrize(
    "one",
    [
        v_shape(2, 6, 4, times=UNEVEN),
        makespan(2, 7, 4, times=UNEVEN),
        makespan(2, 6, 4, times=UNEVEN_BLOCKS),
        build(placement.interleaved(2, 2), 4, _LAST_LEFT, Memory((3, 3, 3, 2), (0, 0, -2, -3), (9, 9))),
    ],
)
def test_what_remains_is_no_longer_than_any_end(one: Problem) -> None:
    steps = kept(one, (0, 1))
    least = exact(one, steps)
    assert 0.6 * least <= guiding(steps).layers[0].rows.max() <= least


@pytest.mark.parametrize(("one", "width"), [(MERGING, 2), (IN_BLOCKS, 8)])
def test_fewer_labels_are_merged_below_a_value(one: Problem, width: int) -> None:
    """With as many labels of a state more is proved than all orders give, of fewer labels; with fewer of them less."""
    steps = kept(one, (0, 1, 2))
    every, least = plain(one, steps, width), exact(one, steps)
    assert every.merged and every.ticks is not None and every.ticks < least
    found = end(one, steps, every.ticks + 3, width)
    assert found.ticks is not None and found.ticks > every.ticks
    assert found.work < every.work
    looked_at = (end(one, steps, least, 64, guide).work for guide in (steps, kept(one, stages=(0,))))
    assert next(looked_at) < next(looked_at)


def test_work_does_not_grow_with_the_microbatches() -> None:
    """Rounds that repeat are skipped, and prove no more than each of them, even where few labels are kept."""
    long = {m: v_shape(2, m, 3) for m in (1_000, 100_000)}
    found = {m: plain(one, kept(one, (0, 1)), 8) for m, one in long.items()}
    assert found[100_000].work < 1.1 * found[1_000].work
    assert found[1_000].ticks is not None and found[100_000].ticks is not None
    assert found[100_000].ticks == pytest.approx(100 * found[1_000].ticks, rel=0.01)
    for one in (v_shape(2, 24, 3, times=UNEVEN), makespan(2, 24, 0, times=UNEVEN, **FREED)):
        steps = kept(one, (0, 1))
        ends = [plain(one, steps, width).ticks or 0 for width in (1, 64)]
        early = [plain(one, steps, width, until=until).ticks or 0 for width in (1, 64) for until in (3, 8)]
        whole = plain(one, steps, 64, until=96).ticks
        assert whole is not None and max(*ends, *early) <= whole and early[-1] >= 0.8 * whole


def test_a_layer_that_is_broken_off_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels after a block count too: where those of a layer are too many, some of its states have been left out."""
    one = makespan(2, 4, 4, times=UNEVEN_BLOCKS)
    steps = kept(one, (0, 1))
    whole = plain(one, steps, 64).ticks
    monkeypatch.setattr(chain_steps, "_AT_ONCE", 1)
    assert plain(one, steps, 64).ticks == whole
    for most in range(1, 40, 3):
        monkeypatch.setattr(chain_steps, "_LAYER", most)
        assert plain(one, steps, 64).ticks is None


def test_numbers_too_large_for_a_label_prove_nothing_or_the_same() -> None:
    steps = kept(v_shape(2, 8, 3), (0, 1)).steps
    assert completion(steps._replace(ticks=steps.ticks * 2**26), EVERY, Event()) is None
    assert completion(steps._replace(blocks=steps.blocks + 2**26), EVERY, Event()) is None
    large = v_shape(2, 8, 3, times={"forward": 10**7, "backward": 10**7 + 1})
    claim = Certificate(KIND, 1, "", 0, Diagram((0, 1, 2, 3), 8, 500, (0, 1, 2, 3), device=0))
    assert verdict(large, claim) is Verdict.NOT_VERIFIED
    few, many = v_shape(2, 5, 3, times=WHOLE), v_shape(2, 5, 3, times={"forward": 10 * 2**24, "backward": 20 * 2**24})
    assert best("all orders", many) == 2**24 * best("all orders", few)


def test_values_up_to_that_of_a_schedule_are_tried() -> None:
    steps = kept(MERGING, (0, 1, 2))
    least = exact(MERGING, steps)
    tried = [
        one.value_ticks
        for one in bounds_of_devices(ThresholdSearch(MERGING, Event(), lambda: (least - 100, least + 30), 1))
    ]
    assert tried == sorted(set(tried)) and tried[-1] <= least
    assert tried[-1] > (plain(MERGING, steps, 1).ticks or 0)
    refuted = [*bounds_of_devices(ThresholdSearch(MERGING, Event(), lambda: (least - 100, least - 40), 8))]
    assert refuted[-1].value_ticks == least - 40
    assert [*bounds_of_devices(ThresholdSearch(MERGING, Event(), lambda: (least, least), 8))] == []


@pytest.mark.parametrize(
    "ask", [partial(bounds_of_stages, device=7), partial(bounds_of_more_stages, stages=(7, 8, 13))]
)
def test_stages_beside_those_of_a_device_prove_more_than_words_and_no_more_than_all_orders(ask: Ask) -> None:
    words = in_words(THIRD)
    found = [*ask(ThresholdSearch(THIRD, Event(), lambda: (words, 1.05 * words)))]
    tried = [one.value_ticks for one in found]
    assert tried == sorted(set(tried)) and tried[0] > words
    last = found[-1].evidence
    assert isinstance(last, Diagram) and {7, 8} < set(last.stages)
    steps = kept(THIRD, stages=last.stages)
    assert 1.01 * words < tried[-1] <= exact(THIRD, steps)
    assert_proved_and_no_more(THIRD, found[-1:])


def test_devices_that_have_too_many_states_wait_their_turn() -> None:
    one = v_shape(7, 4, 3, **LINE)
    assert [*in_even_steps(one, one.placement.chains[0], 4)] == [(0, 1, 3, 4, 6), (0, 2, 4, 6), (0, 3, 6), (0, 6)]
    for large, stages in (
        (makespan(8, 24, 10, times=BLOCK, **LINE), (0, 7)),
        (makespan(8, 24, 24, times=BLOCK), (0, 15)),
    ):
        first = next(bounds_of_all_orders(large, Event(), 1))
        assert first.evidence == Diagram(stages, 1)


# Of several chains.


def test_orders_of_all_chains_below_a_value() -> None:
    one = bidirectional(2, 8, 2)
    steps = on_all(one, 0)
    low, high = (end(one, steps, value, 512) for value in (50, 10_000))
    assert low.ticks == 50 and high.ticks is not None and high.ticks > 50
    assert low.work < high.work
    assert end(one, steps, high.ticks, 512).ticks == high.ticks == exact(one, steps)
    narrow = plain(one, steps, 1)
    assert narrow.merged and narrow.ticks is not None and narrow.ticks <= high.ticks


@pytest.mark.parametrize("objective", ["makespan", "span"])
def test_ways_on_of_each_device_prove_no_less_than_one_row_and_no_more_than_all_orders(objective: str) -> None:
    one = bidirectional(3, 6, 2, objective)
    steps, alone = (
        on_all(one, 0, 1, 2),
        [on_all(one, device) for device in ((0, 1, 2) if objective == "makespan" else (0,))],
    )
    least, guides = exact(one, steps), [guiding(each) for each in alone]
    for value in (least - 10, least + 5):
        single = least_end(steps.steps, 8, EVERY, Event(), projected_completions(one, steps, guides), value)
        asked = ThresholdSearch(one, Event(), lambda value=value: (value - 1, value), 8, EVERY, EVERY)
        found = [*asked.certificates(steps, guides, 1, 1, rows=64)]
        assert single.ticks is not None and single.ticks <= min(least, value)
        assert not found or single.ticks <= found[-1].value_ticks <= min(least, value)


# The parts of a solve.


class Little:
    """An opening that proves less than all orders of some stages."""

    name = "little"

    def applies(self, _: Search) -> bool:
        return True

    def run(self, search: Search) -> None:
        some = Diagram((7, 8, 13), 64, 1_200_000, (7, 8, 13))
        search.incumbent.argue(Certificate(KIND, 1_200_000, "", 7, some))


@pytest.mark.parametrize(
    ("one", "opening", "part"),
    [
        (v_shape(3, 8, 3), (AnalyticBounds(load_only=True), Sequential()), ThresholdsOnDevices()),
        (IN_BLOCKS, (AnalyticBounds(load_only=True), Sequential()), ThresholdsOnDevices()),
        (THIRD, (AnalyticBounds(), Sequential()), ThresholdsOnStages()),
        (THIRD, (AnalyticBounds(), Sequential(), Little()), ThresholdsOnStages()),
    ],
)
def test_a_search_by_a_part_alone_raises_the_bound(one: Problem, opening: Any, part: Any) -> None:
    """Stages that gave the bound guide more of them."""
    bounds, *first = opening
    raised, over = [], Event()

    def keep(_: Progress) -> None:
        """End the search once a diagram, of enough stages, gave the bound."""
        found = search.incumbent.state.certificates
        raised[:] = [each.evidence for each in found if isinstance(each.evidence, Diagram) and each.text]
        if raised and (len(first) == 1 or max(len(each.stages) for each in raised) > 3):
            over.set()

    search = Search(one, counted(0.5), keep, over, Engine(bounds, tuple(first), (part,), finished))
    run(search)
    assert not search.incumbent.state.notes
    assert over.is_set() and raised[0].below is not None


def test_memory_for_more_weight_passes_than_there_are_gives_no_bound_above_a_schedule() -> None:
    """A weight pass that holds 6 of 55,375,954,551 quanta, and times of 10^10 ticks: their product is above 2^63."""
    document = {
        "devices": 2,
        "microbatches": 6,
        "placement": "wave",
        "chunks": 2,
        "objective": "span",
        "times": {
            "forward": [0.0074735, 7.444024607996318, 0.00819, 8.3],
            "backward": [8.46053542, 7.163246609507e-09, 0.00576474382800521, 9.152],
            "weight": [3.951782, 9.7583609722874, 5.948039587965, 0.67387215949261],
        },
        "memory": {
            "activation": [55896861658.36554, 72391967109.75288, 68554920000.0, 67.8681719940327],
            "capacity": 553759545519.5226,
        },
    }
    problem = problem_from(document)
    schedule = solve(problem, counted(0.01)).value_ticks
    assert schedule is not None
    bounds = [*islice(bounds_of_all_orders(problem, Event(), work=200_000), 3)]
    assert bounds
    for bound in bounds:
        assert 0 < bound.value_ticks <= schedule
        assert check_bound(problem, bound).verdict is Verdict.VERIFIED
