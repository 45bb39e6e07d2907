"""The bounds by decision diagrams on problems that are unfair to a sentence of their arguments: against all orders, and checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from benchmarks.proofs.further_bounds import (
    all_orders,
    diagrams_by_device,
    diagrams_by_threshold,
    diagrams_of_more_stages,
)
from pipesched.checking.finding import Verdict
from pipesched.problem.objective import objectives
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from tests.support.certified import verdict
from tests.support.exhaustive.optimum import compared
from tests.support.makers import problem

LINE, V = {"placement": "linear"}, {"placement": "v-shape"}
TIMES = {"forward": 3, "backward": 4, "weight": 5}
WHOLE = {"forward": 3, "backward": 7}
# Found by an attack on the program with one of the named mutants.
BOTH_WAYS: dict[str, object] = {
    "forward": [2, 6, 0, 6],
    "backward": [4, 1, 1, 6],
    "weight": [2, 75, 0, 36],
    "fused": [6, 78, 7, 42],
}
BOTH_WAYS |= {"transfer": [5, 6, 5, 48]}
BOTH_WAYS_MEMORY: dict[str, object] = {
    "capacity": [8, 13],
    "activation": [4, 2, 8, 5],
    "freed_by_backward": [-4, 0, 8, 5],
}
SHORT_BLOCKS: dict[str, object] = {
    "forward": 0,
    "backward": [4, 0, 64, 2],
    "weight": [6, 0, 0, 2],
    "fused": [12, 0, 64, 6],
}
SHORT_BLOCKS |= {"transfer": [20, 111, 84, 3], "overlapped": [13, 4, 56, 6]}
SHORT_BLOCKS_MEMORY: dict[str, object] = {
    "capacity": [34, 12],
    "activation": [8, 3, 4, 3],
    "freed_by_backward": [7, 1, -2, 0],
}
SOME_STAGES: dict[str, object] = {
    "forward": [5, 0, 72],
    "backward": [0, 2, 1],
    "weight": 20,
    "fused": [3, 25, 88],
    "transfer": [65, 0, 0],
}
SOME_STAGES_MEMORY: dict[str, object] = {"capacity": [13, 4], "activation": [6, 3, 3], "freed_by_backward": [-1, 3, 3]}

# The sentence that each is unfair to; the devices, micro-batches, times, memory and more.
UNFAIR: dict[str, tuple[int, int, dict[str, object], dict[str, object], dict[str, object]]] = {
    "steps have a length": (2, 4, {"forward": 0, "backward": 0, "weight": 2}, {"capacity": 2}, LINE),
    "steps have an order": (2, 2, {"forward": [0, 1, 0, 0], "backward": [0, 0, 1, 0], "weight": 0}, {"capacity": 3}, V),
    "times tell steps apart": (2, 3, {"forward": 1, "backward": 1, "weight": 1, "transfer": 1}, {"capacity": 3}, V),
    "weight passes wait": (2, 4, TIMES | {"weight": 50}, {"capacity": 3, "freed_by_backward": 1}, LINE),
    "weight passes give something back": (2, 4, TIMES | {"weight": 20}, {"capacity": 2, "freed_by_backward": 1}, LINE),
    "gradients give something back": (2, 4, TIMES, {"capacity": 2, "freed_by_backward": 0}, LINE),
    "gradients take nothing": (2, 3, TIMES, {"capacity": 4, "freed_by_backward": -1}, V),
    "memory has room for two": (2, 3, TIMES, {"capacity": 2}, V),
    "a device's memory decides": (2, 4, TIMES, {"capacity": 2, "activation": [0, 2]}, LINE),
    "a way is short": (2, 4, TIMES | {"transfer": 50}, {"capacity": 2}, LINE),
    "micro-batches pass each other": (3, 1, TIMES | {"transfer": 7}, {"capacity": 1}, LINE),
    "the first device is device 0": (2, 4, TIMES, {"capacity": 2}, {"placement": [1, 0]}),
    "a chain has its devices alone": (2, 4, TIMES, {"capacity": 2}, {"placement": "bidirectional"}),
    "blocks take no less than a pass": (2, 4, WHOLE | {"overlapped": 2}, {"capacity": 2}, LINE),
    "blocks take time": (2, 2, TIMES | {"overlapped": [0, 9, 9, 0]}, {"capacity": 4}, V),
    "blocks pay": (2, 2, TIMES | {"overlapped": 500}, {"capacity": 4}, V),
    "a block has room": (2, 4, WHOLE | {"overlapped": 8}, {"capacity": 1}, LINE),
    "full backwards are longer": (2, 4, TIMES | {"fused": 5, "overlapped": 6}, {"capacity": 2}, LINE),
    "blocks are of one chain": (2, 4, WHOLE | {"overlapped": 7}, {"capacity": 2}, {"placement": "bidirectional"}),
    "a span begins with the first pass": (2, 2, BOTH_WAYS, BOTH_WAYS_MEMORY, {"placement": "bidirectional"}),
    "a block is of modelled stages": (2, 3, SHORT_BLOCKS, SHORT_BLOCKS_MEMORY, {"placement": "bidirectional"}),
    "a guide has all stages of a device": (2, 3, SOME_STAGES, SOME_STAGES_MEMORY, {"placement": [0, 1, 0]}),
}


def claims(one: Problem) -> Iterable[Certificate]:
    for further in (diagrams_by_threshold, diagrams_by_device, diagrams_of_more_stages):
        yield from further(one)
    yield from all_orders(1, 64, blocks=True)(one) if one.overlaps else all_orders(64)(one)


@pytest.mark.parametrize("objective", objectives()[:2])
@pytest.mark.parametrize("sentence", UNFAIR)
def test_no_more_is_claimed_or_proved_than_the_optimum(sentence: str, objective: Objective) -> None:
    devices, microbatches, times, memory, more = UNFAIR[sentence]
    one = problem(devices, microbatches, times=times, memory=memory, objective=objective.name, **more)
    found = list(claims(one))
    assert found
    for genuine in found:
        assert verdict(one, genuine) is Verdict.VERIFIED
    strongest = max(found, key=lambda claim: claim.value_ticks)
    best = compared(one, objective, strongest.value_ticks, 1_000_000)
    assert not best.beaten
    if best.attained:
        assert verdict(one, replace(strongest, value_ticks=strongest.value_ticks + 1)) is Verdict.REFUSED
