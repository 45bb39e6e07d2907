"""DualPipe, DualPipeV, Chimera and Hanayo: their orders against the papers' steps and slots, and their figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.problem import placement
from pipesched.problem.blocks import Blocks
from pipesched.problem.passes import BW, B, F, Pass, PassKind, Slot, W
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import Metrics
from pipesched.schedule.schedule import slot_text
from pipesched.simulation.simulator import simulate
from tests.heuristics.test_every_heuristic import alike as equal
from tests.heuristics.test_every_heuristic import run
from tests.support.columns import costs_of

FAMILY = ("dualpipe", "dualpipe-v", "chimera", "hanayo")


def alike(where: Placement, m: int, f: int, b: int, w: int | None, block: int) -> Problem:
    """Equal stages with overlapped blocks; an activation takes 4 and is held until the backward is done."""
    return equal(where, m, f, b, w).with_stages(blocks=(Blocks(block),) * where.stages)


def idle(found: Metrics, device: int) -> int:
    return found.makespan_ticks - found.work_ticks[device]


class Steps:
    """The eight steps a second time: how often each runs, as DeepSeek's report numbers them, and what a round is."""

    def __init__(self, stages: tuple[int, int], first: tuple[int, int], n: int, rank: int, half: int) -> None:
        self.stages, self.first, self.n, self.rank, self.half = stages, first, n, rank, half
        self.ran = {(kind, side): 0 for kind in (F, B, W) for side in (0, 1)}
        self.weights: list[Pass] = []

    def one(self, kind: PassKind, side: int) -> Pass:
        counter = (F if kind is F else B, side)
        j = self.first[side] + self.ran[counter]
        self.ran[counter] += 1
        if kind is B:
            self.weights.append(Pass(W, self.stages[side], j))
        return Pass(kind, self.stages[side], j)

    def counts(self) -> list[int]:
        h, r = self.half, self.rank
        return [2 * (h - r - 1), r + 1, h - r - 1, self.n - 2 * h + r + 1, h - r - 1, r + 1, h - r - 1, r + 1]

    def order(self) -> Iterator[Slot]:
        s1, s2, s3, s4, s5, s6, s7, s8 = self.counts()
        for _ in range(s1):
            yield (self.one(F, 0),)
        for _ in range(s2):
            yield (self.one(F, 0),)
            yield (self.one(F, 1),)
        for _ in range(s3):
            yield (self.one(B, 1),)
            yield (self.weights.pop(0),)
            yield (self.one(F, 1),)
        for i in range(s4):
            forward, backward = self.one(F, 0), self.one(BW, 1)
            if i == 0 and self.rank == self.half - 1:
                yield (forward,)
                yield (backward,)
            else:
                yield forward, backward
            yield self.one(F, 1), self.one(BW, 0)
        for _ in range(s5):
            yield (self.one(BW, 1),)
            yield self.one(F, 1), self.one(BW, 0)
        split = False
        for i in range(s6):  # the middle falls before direction 1's backward or after it
            split = split or (i == s6 // 2 and self.rank % 2 == 1)
            yield (self.one(B if split else BW, 1),)
            split = split or (i == s6 // 2 and self.rank % 2 == 0)
            yield (self.one(B if split else BW, 0),)
        for _ in range(s7):
            yield (self.weights.pop(0),)
            yield (self.one(B, 0),)
        for _ in range(s8):
            yield (self.weights.pop(0),)


DUALPIPE_SIZES = [(2, 4), (2, 10), (4, 8), (4, 10), (4, 14), (6, 12), (6, 20), (8, 16), (8, 20), (8, 24), (10, 20)]
DUALPIPE_V_SIZES = [(1, 2), (1, 5), (2, 4), (2, 7), (3, 6), (3, 8), (4, 8), (4, 10), (5, 11), (6, 12), (8, 24)]


@pytest.mark.parametrize(("p", "m"), DUALPIPE_SIZES)
def test_dualpipe_runs_the_eight_steps_on_every_device(p: int, m: int) -> None:
    orders = HEURISTICS["dualpipe"].order(equal(placement.bidirectional(p), m, 1, 1, 1)).orders
    for d in range(p):
        stages, first = (d, 2 * p - 1 - d), (0, m // 2)
        if d >= p // 2:  # entered from the other end: the directions change places
            stages, first = (stages[1], stages[0]), (first[1], first[0])
        assert orders[d] == tuple(Steps(stages, first, m // 2, min(d, p - 1 - d), p // 2).order())


@pytest.mark.parametrize(("p", "m"), DUALPIPE_V_SIZES)
def test_dualpipe_v_runs_the_eight_steps_on_every_device(p: int, m: int) -> None:
    orders = HEURISTICS["dualpipe-v"].order(equal(placement.v_shape(p), m, 1, 1, 1)).orders
    for d in range(p):
        assert orders[d] == tuple(Steps((d, 2 * p - 1 - d), (0, 0), m, d, p).order())


def test_the_published_picture_of_dualpipe() -> None:
    """DeepSeek-V3, figure 5: 8 devices, 20 micro-batches, 10 each way; seed 000. All passes alike, F&B is 3."""
    problem = alike(placement.bidirectional(8), 20, 1, 1, 1, block=3)
    timeline, found = simulate(problem, HEURISTICS["dualpipe"].order(problem)), run(problem, "dualpipe")
    rows = [[slot_text(slot) for slot in order] for order in timeline.schedule.orders]
    first_backward = next(place for place, text in enumerate(rows[0]) if text.startswith("B"))
    own = [text for text in rows[0][:first_backward] if text.startswith("F0.")]
    assert own == [f"F0.{j}" for j in range(7)]
    for device in range(8):  # each direction reaches a device a step later
        assert timeline.start(Pass(F, device, 0)) == device
        assert timeline.start(Pass(F, 8 + device, 10)) == device
    assert next(text for text in rows[0] if "&" in text).startswith("F0.7&")
    assert [text for text in rows[0] if text.startswith("W0.")] == [f"W0.{j}" for j in (6, 7, 8, 9)]
    assert all(row[-1].startswith("W") and "&" in row[len(row) // 2] for row in rows)
    assert not any("&" in text for row in rows for text in row[-5:])
    assert rows[0][:10] == [*own, "F15.10", "B15.10", "W15.10"]
    assert (found.makespan_ticks, set(found.peak_quanta)) == (66, {4 * 9})


@pytest.mark.parametrize("name", ("dualpipe", "dualpipe-v"))
def test_the_papers_bubble_and_memory(name: str) -> None:
    """(PP/2-1)(F&B+B-3W), B the full backward, PP stages; PP+1 activations.

    It counts the innermost devices, which overlap the most pairs, and is exact where F equals the backward for the
    input, W is no longer and F&B no shorter than the full backward.
    """
    random = Random(name)
    for _ in range(60):
        half, f = random.randint(1, 4), random.randint(1, 9)
        w = random.randint(0, f)
        block = random.randint(f + w, 2 * f + w + 2)
        two_way = name == "dualpipe"
        where = placement.bidirectional(2 * half) if two_way else placement.v_shape(half)
        m = 4 * half + 2 * random.randint(0, 3) if two_way else 2 * half + random.randint(0, 5)
        problem = alike(where, m, f, f, w, block)
        found = run(problem, name)
        assert idle(found, half - 1) == (half - 1) * (block + (f + w) - 3 * w)
        assert set(found.peak_quanta) == {4 * (2 * half + 1)}
        form = HEURISTICS[name].closed_form(problem)
        assert form is not None
        assert (form.makespan, form.span, form.peak) == (found.makespan_ticks, found.span_ticks, found.peak_quanta)


@pytest.mark.parametrize("name", FAMILY)
def test_closed_forms_are_silent_outside_the_papers_setting(name: str) -> None:
    where = placement.bidirectional(4) if name in ("dualpipe", "chimera") else placement.v_shape(4)
    problem = alike(where, 8, 2, 2, 1, 4)
    assert HEURISTICS[name].closed_form(problem) is not None
    for changed in (
        problem.with_stages(transfer=(1,) * where.stages),
        problem.with_stages(forward=(3, *costs_of(problem).forward[1:])),
        replace(problem, links=((1,) * where.devices,) * where.devices),
    ):
        assert HEURISTICS[name].closed_form(changed) is None
