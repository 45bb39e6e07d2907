"""What Kimi K2's offload costs: copies free, copies of other lengths."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from benchmarks.cases.kimi_k2 import example
from benchmarks.kimi_offload import free_copies, lengths, with_copies
from heuristics.catalogue import HEURISTICS
from pipesched.problem.passes import B, F, W
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate

MINI = replace(example("kimi-k2-offload-mini"), microbatches=8)


def test_the_example_has_copies_of_half_of_what_a_pair_computes() -> None:
    ticks = {(stage.offload.out_ticks, stage.offload.in_ticks) for stage in MINI.stages if stage.offload}
    assert ticks == {(1180, 1180)}
    assert abs(Fraction(1180, MINI.stages[0].compute_ticks(F, B, W)) - Fraction(1, 2)) < Fraction(1, 100)


def test_free_copies_cost_nothing_and_long_ones_much() -> None:
    for ratio, costs in ((Fraction(0), False), (Fraction(2), True)):
        one = with_copies(MINI, ratio)
        timeline = simulate(one, HEURISTICS["kimi-k2-offload"].order(one))
        assert (free_copies(timeline) < measure(timeline).makespan) is costs


def test_longer_copies_never_take_less_time() -> None:
    times = [float(row[1]) for row in lengths(MINI)]
    assert times == sorted(times) and times[-1] > 1.5 * times[0]
