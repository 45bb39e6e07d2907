"""The replay of decision diagrams: exact on a model that is no pipeline, and evidence that a broken rule would accept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from pipesched.checking.check import check_bound
from pipesched.checking.diagram import labels as labels_module
from pipesched.checking.diagram import replay
from pipesched.checking.diagram.argument import decision_diagram
from pipesched.checking.diagram.by_state import ByState, Label
from pipesched.checking.diagram.chain_steps import ChainSteps
from pipesched.checking.diagram.model import Labels, Layer, Numbers, Successors
from pipesched.checking.finding import NotCoveredError, Verdict
from pipesched.checking.relaxed.least_memory import with_least_memory
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from tests.support.diagrams import bidirectional

_LAYERS, _PLACES = 7, 4
# By how many layers and places a jump leads on.
_JUMPS = ((1, 1), (1, 2), (2, 0))
# A layer and a place.
Place = tuple[int, int]


class Jumps:
    """Two clocks; a jump waits for the later one or lets each run on, by layer, place and jump."""

    first, last = (0, 0), (_LAYERS, 0)

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.cost = {
            (layer, place, jump): (random.randrange(20), random.randrange(20), random.random() < 0.3)
            for layer in range(_LAYERS)
            for place in range(_PLACES)
            for jump in range(len(_JUMPS))
        }

    def begin(self) -> Label:
        return (0, 0)

    def layer_of(self, state: Place) -> int:
        return state[0]

    def children(self, state: Place, labels: list[Label], below: int) -> Iterator[tuple[Place, Label, int]]:
        layer, place = state
        for one, other, *_ in labels:
            for jump, (further, by) in enumerate(_JUMPS):
                if layer + further > _LAYERS:
                    continue
                a, b, waits = self.cost[layer, place, jump]
                start = (max(one, other),) * 2 if waits else (one, other)
                after = start[0] + a, start[1] + b
                last = layer + further == _LAYERS
                if max(after) < below:
                    yield (layer + further, 0 if last else (place + by) % _PLACES), after, max(after)

    def least(self, state: Place = (0, 0), label: Label = (0, 0)) -> int:
        """By every path."""
        found = self.children(state, [label], 10**6)
        return min(end if after == self.last else self.least(after, times) for after, times, end in found)


def of_jumps(seed: int, width: int | None, below: int | None = None) -> int:
    return replay.least_end(ByState(Jumps(seed)), width, below)


@pytest.mark.parametrize("seed", range(12))
def test_without_a_width_the_least_end_with_one_no_more(seed: int) -> None:
    least = Jumps(seed).least()
    assert of_jumps(seed, None) == of_jumps(seed, 50) == least
    assert of_jumps(seed, 1) <= of_jumps(seed, 2) <= least
    assert [of_jumps(seed, None, below) for below in (least - 1, least, least + 1)] == [least - 1, least, least]


def test_merged_labels_prove_less_of_some() -> None:
    assert sum(of_jumps(seed, 1) < Jumps(seed).least() for seed in range(12)) > 2


def test_times_of_any_size_are_exact() -> None:
    class Long(Jumps):
        def begin(self) -> Label:
            return (2**40, 2**40)

    assert replay.least_end(ByState(Long(3)), None, None) == 2**40 + Jumps(3).least()


def test_rows_of_labels_of_different_lengths_meet_in_a_layer() -> None:
    """Jumps over a layer lead to the first place alone, whose rows are short; steps from the layer between to all."""

    class Wider(Jumps):
        def children(self, state: Place, labels: list[Label], below: int) -> Iterator[tuple[Place, Label, int]]:
            for after, label, end in super().children(state, labels, below):
                yield after, (*label, *(5,) * after[1]), end

    for seed in range(4):
        assert replay.least_end(ByState(Wider(seed)), None, None) == Jumps(seed).least()


def test_as_many_moves_are_tried_as_the_model_allows_and_not_one_more() -> None:
    class Counting(ByState[Place]):
        tried = 0

        def successors(self, layer: Layer, done: int, below: int) -> Iterator[Successors]:
            for part in super().successors(layer, done, below):
                self.tried += part.tried
                yield part

    whole = Counting(Jumps(3))
    least = replay.least_end(whole, None, None)
    just, fewer = ByState(Jumps(3)), ByState(Jumps(3))
    just.most, fewer.most = whole.tried, whole.tried - 1
    assert replay.least_end(just, None, None) == least
    with pytest.raises(NotCoveredError):
        replay.least_end(fewer, None, None)


# What a replay with one rule broken would make of the labels of each state, before and beyond the width.
Reduced = Callable[[Labels, Numbers, Numbers, int], tuple[Numbers, Labels]]
_genuine: Reduced = labels_module.prune_and_merge
_NO_WIDTH = 2**40


def _one_by_sum(labels: Labels, order: Numbers, at: Numbers, width: int) -> tuple[Numbers, Labels]:
    """Dominance by the sum of times: all other labels of a state count as dominated."""
    counts, kept = _genuine(labels, order, at, width)
    since = np.append(0, np.cumsum(counts))[:-1]
    return np.ones_like(counts), kept[since]


def _dropped(labels: Labels, order: Numbers, at: Numbers, width: int) -> tuple[Numbers, Labels]:
    """No merging: labels beyond the width are left out."""
    counts, kept = _genuine(labels, order, at, _NO_WIDTH)
    since = np.append(0, np.cumsum(counts))
    rows = [kept[a : min(b, a + width)] for a, b in pairwise(since)]
    return np.minimum(counts, width), np.concatenate([kept[:0], *rows])


def _any_width(labels: Labels, order: Numbers, at: Numbers, width: int) -> tuple[Numbers, Labels]:
    """The width of the evidence counts for nothing."""
    return _genuine(labels, order, at, width + _NO_WIDTH)


def _early(
    self: ChainSteps, found: Layer, order: Numbers, done: int, below: int, admitted: Any = ChainSteps.admitted
) -> Labels | None:
    """A completion bound that is too large by 3 ticks."""
    stay: Labels | None = admitted(self, found, order, done, below - 3)
    return stay


def _all_stages(problem: Problem) -> tuple[int, ...]:
    return tuple(stage for chain in problem.placement.chains for stage in chain)


TIGHT = with_least_memory(bidirectional(2, 6, 2, "span"))
STAGES = _all_stages(TIGHT)
BROKEN: dict[str, tuple[object, str, object, Diagram]] = {
    "dominance": (replay, "prune_and_merge", _one_by_sum, Diagram(STAGES, device=0)),
    "merging": (replay, "prune_and_merge", _dropped, Diagram(STAGES, 1, device=0)),
    "width": (replay, "prune_and_merge", _any_width, Diagram(STAGES, 1, device=0)),
    "completion bound": (ChainSteps, "admitted", _early, Diagram(STAGES, None, 200, STAGES, None, 0)),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_claim_that_a_broken_rule_would_prove_is_refused(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, broken, evidence = BROKEN[rule]
    genuine = Certificate("decision diagram", decision_diagram(TIGHT, evidence), "", 0, evidence)
    if rule == "completion bound":  # exact: its threshold is one tick above the least end
        evidence = replace(evidence, below=int(genuine.value_ticks) + 1)
        genuine = replace(genuine, evidence=evidence)
    assert check_bound(TIGHT, genuine).verdict is Verdict.VERIFIED
    with monkeypatch.context() as patch:
        patch.setattr(place, name, broken)
        forged = replace(genuine, value_ticks=decision_diagram(TIGHT, evidence))
        assert check_bound(TIGHT, forged).verdict is Verdict.VERIFIED
    assert forged.value_ticks > genuine.value_ticks
    assert check_bound(TIGHT, forged).verdict is Verdict.REFUSED


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"width": 1}, id="fewer labels"),
        pytest.param({"below": 83}, id="a lower threshold"),
        pytest.param({"guide": (), "below": None, "rows": None, "width": 1}, id="no completion bound"),
        pytest.param({"stages": (0, 1), "guide": (0, 1)}, id="fewer stages"),
    ],
)
def test_evidence_that_proves_less_is_refused(changed: dict[str, Any]) -> None:
    evidence = Diagram(STAGES, 512, 84, STAGES, 1, 0)
    genuine = Certificate("decision diagram", 84, "", 0, evidence)
    assert check_bound(TIGHT, genuine).verdict is Verdict.VERIFIED
    assert check_bound(TIGHT, replace(genuine, evidence=replace(evidence, **changed))).verdict is Verdict.REFUSED
