"""Diagrams of all orders and blocks: never above the optimum, exact on small problems, checked from its evidence."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from threading import Event

import numpy as np
import pytest

from pipesched.checking.finding import Verdict
from pipesched.problem.passes import F
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import TaskSpec
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingBlocks
from pipesched.results.diagram_evidence import Diagram
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram import all_orders, follow
from solver.diagram.all_orders import bounds_of_all_orders
from solver.diagram.certificate import KIND
from solver.diagram.follow import least_end
from solver.diagram.layers import Least
from solver.diagram.steps import Kept, kept_stages, stages_on, walked_chains, without_blocks
from solver.limits import Limits
from solver.solve import solve
from tests.support.certified import assert_proved_and_no_more, attack_refutes, verdict
from tests.support.makers import problem

EVEN = {"forward": 10, "backward": 10, "weight": 10, "overlapped": 24}
WHOLE = {"forward": 10, "backward": 20, "overlapped": 24}
UNEVEN = {
    "forward": [9, 11, 10, 13],
    "backward": [10, 9, 11, 14],
    "weight": [11, 10, 9, 13],
    "overlapped": [23, 24, 22, 31],
    "transfer": 1,
}


def posed(devices: int, microbatches: int, capacity: float, objective: str = "makespan", **keys: object) -> Problem:
    given: dict[str, object] = {"times": EVEN, "memory": {"capacity": capacity}, "placement": "v-shape", **keys}
    return problem(devices, microbatches, objective=objective, **given)


def of_tasks(one: Problem) -> Problem:
    """The same, where each forward sends something on another stream before it ends: no file has that and blocks."""
    parts = TaskSpec("compute", 10, "whole"), TaskSpec("comm", 1, "send")
    stages = tuple(replace(stage, tasks=((F, parts),)) for stage in one.stages)
    return replace(one, stages=stages, stream_names=("compute", "comm"))


def strongest(one: Problem, widths: tuple[int, ...] = (64,)) -> Certificate:
    return max(bounds_of_all_orders(one, Event(), widths), key=lambda certificate: certificate.value)


def least(one: Problem, devices: tuple[int, ...], width: int, work: int = 10**7, longer: int = 0) -> Least:
    """What is proved on some devices, with blocks so much longer."""
    (chain,) = walked_chains(one)
    kept = kept_stages(one, Paths(one), chain, stages_on(one, chain, devices))
    assert kept is not None
    blocks = kept.steps.blocks
    return least_end(kept.steps._replace(blocks=np.where(blocks < 0, -1, blocks + longer)), width, work, Event())


@pytest.mark.parametrize(
    ("one", "optimum"),
    [
        (posed(2, 4, 4), 236),
        (posed(3, 5, 6), 304),
        (posed(2, 6, 3, "span"), 390),
        (posed(2, 6, 3, times=WHOLE), 460),
        (posed(3, 5, 5, times=WHOLE), 384),
        (posed(3, 6, 2, "span", placement="linear"), 250),
        (posed(3, 6, 2, times=WHOLE, placement="linear"), 300),
    ],
)
def test_the_optimum_of_small_problems_that_no_argument_in_words_proves(one: Problem, optimum: int) -> None:
    """A solve finds schedules with these values."""
    assert one.in_units(Fraction(strongest(one).value)) == optimum
    assert one.in_units(certificates(one, one.objective)[0].value) < optimum


def test_a_solve_proves_with_it_what_no_argument_in_words_does() -> None:
    found = solve(posed(2, 6, 3, "span"), Limits(deterministic=2.0, workers=1))
    assert found.lower_bound_ticks == found.value_ticks
    assert found.certificate.kind == KIND


def test_blocks_shorten_what_is_proved() -> None:
    """Where blocks are slow, none runs; else they decide."""
    alone, slow, fast = (least(posed(2, 4, 4), (0, 1), 64, longer=longer).ticks for longer in (1_000, 6, 0))
    assert alone is not None and slow is not None and fast is not None
    assert fast < slow == alone


def test_a_block_holds_what_its_gradient_gives_back() -> None:
    """Memory for one activation a device: a forward and a gradient in a block would need two."""
    one = posed(2, 4, 1, placement="linear")
    assert least(one, (0, 1), 64).ticks == least(one, (0, 1), 64, longer=1_000).ticks


def test_blocks_are_those_of_two_stages_of_a_device() -> None:
    one = posed(2, 4, 4, times=UNEVEN)
    ticks = one.in_units(1)
    kept = kept_stages(one, Paths(one), (0, 1, 2, 3), (0, 1, 2, 3))
    assert kept is not None
    found = [[float(n * ticks) for n in row] for row in kept.steps.blocks[:4, 4:]]
    none = -ticks
    assert found == [[23, none, none, 23], [none, 24, 24, none], [none, 22, 22, none], [31, none, none, 31]]


def test_merged_labels_prove_less() -> None:
    times = {"forward": [9, 11, 10, 13, 8, 12], "backward": [10, 9, 14, 11, 12, 10], "weight": [5, 11, 8, 13, 9, 10]}
    one = posed(3, 6, 4, times=times | {"overlapped": [20, 25, 26, 30, 23, 27]})
    proved = [least(one, (0, 1, 2), width).ticks or 0 for width in (1, 8, 64)]
    assert proved == [407, 427, 433]
    assert least(one, (0, 1, 2), 1).merged
    assert not least(one, (0,), 64).merged


def test_nothing_is_said_of_tasks_or_after_a_stop_or_with_too_much_work() -> None:
    one = posed(2, 8, 3)
    assert list(bounds_of_all_orders(of_tasks(one), Event())) == []
    stop = Event()
    stop.set()
    assert list(bounds_of_all_orders(one, stop)) == []
    assert list(bounds_of_all_orders(one, Event(), work=10)) == []
    assert least(one, (0, 1), 64, work=100).ticks is None


def test_a_layer_that_is_broken_off_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels after a block count too: where those of a layer are too many, some of its states have been left out."""
    one = posed(2, 4, 4, times=UNEVEN)
    whole = least(one, (0, 1), 64).ticks
    monkeypatch.setattr(follow, "_AT_ONCE", 1)
    assert least(one, (0, 1), 64).ticks == whole
    for most in range(1, 40):
        monkeypatch.setattr(follow, "_LAYER", most)
        assert least(one, (0, 1), 64).ticks is None


def test_devices_that_have_too_many_states_wait_their_turn() -> None:
    one = posed(8, 24, 10, placement="linear", times=EVEN)
    first = next(bounds_of_all_orders(one, Event(), (1,)))
    assert first.evidence == Diagram((0, 7), 1, blocks=True)
    assert next(bounds_of_all_orders(posed(8, 24, 24), Event(), (1,))).evidence == Diagram((0, 15), 1, blocks=True)


@pytest.mark.parametrize(
    ("mistake", "name"),
    [
        ("room for one less", "one backward"),
        ("longer blocks", "one backward"),
        ("no blocks", "split backwards"),
        ("a longer way", "makespan"),
    ],
)
def test_an_attack_finds_what_claims_too_much(mistake: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: object) -> Kept | None:
        found = kept_stages(*given)  # type: ignore[arg-type]
        if found is None:
            return None
        steps = found.steps
        changed = {
            "room for one less": steps._replace(room=np.where(steps.room > 0, steps.room - 1, steps.room)),
            "a longer way": steps._replace(lag=steps.lag + 1),
            "longer blocks": steps._replace(blocks=np.where(steps.blocks < 0, -1, steps.blocks + 1)),
            "no blocks": without_blocks(steps),
        }
        return found._replace(steps=changed[mistake])

    monkeypatch.setattr(all_orders, "kept_stages", wrong)
    assert attack_refutes(f"crossings with blocks, {name}")


@pytest.mark.parametrize("objective", list(Objective)[:2])
def test_the_check_proves_the_same_and_no_more(objective: Objective) -> None:
    memory = {"capacity": 4, "freed_by_backward": 0.5}
    uneven = posed(2, 7, 0, objective.value, times=UNEVEN, memory=memory)
    bidirectional = posed(4, 8, 3, objective.value, placement="bidirectional")
    for one in (uneven, posed(2, 7, 3, objective.value, times=WHOLE), bidirectional):
        found = list(bounds_of_all_orders(one, Event(), (1, 8)))
        values = [genuine.value for genuine in found]
        assert values == sorted(set(values))
        assert_proved_and_no_more(one, found)


@pytest.mark.parametrize(
    "evidence",
    [
        CrossingBlocks(1, (1,), 8),
        CrossingBlocks(0, (), 8),
        CrossingBlocks(0, (1, 0), 8),
        CrossingBlocks(0, (0, 0), 8),
        CrossingBlocks(0, (0, 2), 8),
        CrossingBlocks(0, (0, 1), 0),
        CrossingBlocks(0, (0, 1), 10**6),
    ],
)
def test_evidence_of_no_steps_is_refused(evidence: CrossingBlocks) -> None:
    claim = Certificate(CrossingBlocks.form, 1, "", 0, evidence)
    assert verdict(posed(2, 8, 3), claim) is Verdict.REFUSED
    genuine = replace(claim, evidence=CrossingBlocks(0, (0, 1), 1))
    assert verdict(posed(2, 8, 3), genuine) is Verdict.VERIFIED


def test_the_check_does_not_begin_what_takes_too_long_or_has_tasks() -> None:
    claim = Certificate(CrossingBlocks.form, 1, "", 0, CrossingBlocks(0, (0, 1, 2, 3), 8))
    assert verdict(posed(4, 40, 40), claim) is Verdict.NOT_VERIFIED
    few = replace(claim, evidence=CrossingBlocks(0, (0, 1), 8))
    assert verdict(of_tasks(posed(2, 4, 4)), few) is Verdict.NOT_VERIFIED
    assert verdict(posed(2, 4, 4), few) is Verdict.VERIFIED


def test_the_sentence() -> None:
    assert strongest(posed(2, 4, 4)).text == (
        "The forwards and gradients of stages 0, 1, 2, 3 take turns on devices 0, 1, or run two at a time as an overlapped "
        "block, which ends both: a device starts one of these forwards only while its memory has room for it besides others "
        "of these; a micro-batch is away for as long as other stages take. In whichever order and blocks they run, all 4 "
        "micro-batches take at least 236."
    )
