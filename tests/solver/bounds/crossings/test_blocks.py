"""The bound by crossings with blocks: never above the optimum, exact on small problems, checked from its evidence."""

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
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_blocks import bound
from solver.bounds.crossing_blocks.blocks import block_ticks
from solver.bounds.crossing_blocks.bound import Labels, Least, crossing_block_bounds, least_value
from solver.bounds.crossing_steps.steps import Numbers, Steps, steps_of, walked_chains
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
    return max(crossing_block_bounds(one, Event(), widths), key=lambda certificate: certificate.value)


def least(one: Problem, devices: tuple[int, ...], width: int, work: int = 10**7, longer: int = 0) -> Least:
    """What is proved on some devices, with blocks so much longer."""
    (chain,) = walked_chains(one)
    steps = steps_of(one, Paths(one), chain, devices)
    assert steps is not None
    blocks = block_ticks(one, chain, devices)
    return least_value(steps, np.where(blocks < 0, -1, blocks + longer), width, work, Event())


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
    assert found.certificate.kind == bound.KIND


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
    found = [[float(n * ticks) for n in row] for row in block_ticks(one, (0, 1, 2, 3), (0, 1))[:4, 4:]]
    none = -ticks
    assert found == [[23, none, none, 23], [none, 24, 24, none], [none, 22, 22, none], [31, none, none, 31]]


def test_merged_labels_prove_less() -> None:
    times = {"forward": [9, 11, 10, 13, 8, 12], "backward": [10, 9, 14, 11, 12, 10], "weight": [5, 11, 8, 13, 9, 10]}
    one = posed(3, 6, 4, times=times | {"overlapped": [20, 25, 26, 30, 23, 27]})
    proved = [least(one, (0, 1, 2), width).ticks or 0 for width in (1, 8, 64)]
    assert proved == [407, 427, 433]
    assert least(one, (0, 1, 2), 1).merged
    assert not least(one, (0,), 64).merged


def test_nothing_is_said_without_blocks_or_of_tasks_or_after_a_stop_or_with_too_much_work() -> None:
    one = posed(2, 8, 3)
    without = {name: time for name, time in EVEN.items() if name != "overlapped"}
    assert list(crossing_block_bounds(posed(2, 8, 3, times=without), Event())) == []
    assert list(crossing_block_bounds(of_tasks(one), Event())) == []
    stop = Event()
    stop.set()
    assert list(crossing_block_bounds(one, stop)) == []
    assert list(crossing_block_bounds(one, Event(), work=10)) == []
    assert least(one, (0, 1), 64, work=100).ticks is None


def test_a_layer_that_is_broken_off_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels after a block count too: where those of a layer are too many, some of its states have been left out."""
    one, sizes = posed(2, 4, 4, times=UNEVEN), set[int]()
    whole, successors = least(one, (0, 1), 64).ticks, bound._successors

    def seen(*given: object) -> tuple[int, list[Labels], list[Labels]]:
        ended, near, far = successors(*given)  # type: ignore[arg-type]
        sizes.add(sum(len(part.keys) for part in (*near, *far)))
        return ended, near, far

    monkeypatch.setattr(bound, "_successors", seen)
    monkeypatch.setattr(bound, "_AT_ONCE", 1)
    assert least(one, (0, 1), 64).ticks == whole
    for most in range(1, max(sizes)):
        monkeypatch.setattr(bound, "_LAYER", most)
        assert least(one, (0, 1), 64).ticks is None


def test_devices_that_have_too_many_states_wait_their_turn() -> None:
    one = posed(8, 24, 10, placement="linear", times=EVEN)
    first = next(crossing_block_bounds(one, Event(), (1,)))
    assert first.evidence == CrossingBlocks(0, (0, 7), 1)
    assert next(crossing_block_bounds(posed(8, 24, 24), Event(), (1,))).evidence == CrossingBlocks(0, (0,), 1)


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
    def steps(*given: object) -> Steps | None:
        found = steps_of(*given)  # type: ignore[arg-type]
        if found is None:
            return None
        less = {"room": np.where(found.room > 0, found.room - 1, found.room)}
        changed = {"room for one less": less, "a longer way": {"lag": found.lag + 1}}
        return found._replace(**changed.get(mistake, {}))

    def blocks(*given: object) -> Numbers:
        found = block_ticks(*given)  # type: ignore[arg-type]
        changed = {"longer blocks": np.where(found < 0, -1, found + 1), "no blocks": np.full_like(found, -1)}
        return changed.get(mistake, found)

    monkeypatch.setattr(bound, "steps_of", steps)
    monkeypatch.setattr(bound, "block_ticks", blocks)
    assert attack_refutes(f"crossings with blocks, {name}")


@pytest.mark.parametrize("objective", list(Objective)[:2])
def test_the_check_proves_the_same_and_no_more(objective: Objective) -> None:
    memory = {"capacity": 4, "freed_by_backward": 0.5}
    uneven = posed(2, 7, 0, objective.value, times=UNEVEN, memory=memory)
    bidirectional = posed(4, 8, 3, objective.value, placement="bidirectional")
    for one in (uneven, posed(2, 7, 3, objective.value, times=WHOLE), bidirectional):
        found = list(crossing_block_bounds(one, Event(), (1, 8)))
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
    claim = Certificate(bound.KIND, 1, "", 0, evidence)
    assert verdict(posed(2, 8, 3), claim) is Verdict.REFUSED
    genuine = replace(claim, evidence=CrossingBlocks(0, (0, 1), 1))
    assert verdict(posed(2, 8, 3), genuine) is Verdict.VERIFIED


def test_the_check_does_not_begin_what_takes_too_long_or_has_tasks() -> None:
    claim = Certificate(bound.KIND, 1, "", 0, CrossingBlocks(0, (0, 1, 2, 3), 8))
    assert verdict(posed(4, 40, 40), claim) is Verdict.NOT_VERIFIED
    few = replace(claim, evidence=CrossingBlocks(0, (0, 1), 8))
    assert verdict(of_tasks(posed(2, 4, 4)), few) is Verdict.NOT_VERIFIED
    assert verdict(posed(2, 4, 4), few) is Verdict.VERIFIED


def test_the_sentence() -> None:
    assert strongest(posed(2, 4, 4)).text == (
        "On devices 0, 1 the forwards and gradients of 4 stages of a chain take turns, or run two at a time as an "
        "overlapped block, which ends both; a device starts a forward only while its memory has room for it; a "
        "micro-batch is away for as long as other devices take. In whichever order and blocks they run, all 4 "
        "micro-batches take at least 236."
    )
