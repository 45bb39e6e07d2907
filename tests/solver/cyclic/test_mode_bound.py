"""The bound on the period over all modes: never above a pattern's period, reached by some, and sound by any multiplier."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from formulations.cyclic.block_graph import graph_of
from formulations.cyclic.pattern import Pattern
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.cyclic import mode_bound as bounds
from solver.cyclic.mode_bound import mode_bound
from solver.cyclic.period_bounds import one_of_each_chain, period_certificates
from solver.cyclic.period_search import best_pattern
from solver.cyclic.problem_period import unroll
from tests.support.counted import counted
from tests.support.in_turn import in_turn
from tests.support.makers import PLACEMENTS, problem

LITTLE = counted(0.02)
COSTS: dict[str, object] = {"forward": 10, "backward": 10, "weight": 10, "fused": 20, "overlapped": 24}


def open_modes(random: Random) -> Problem:
    """Two devices; fused backwards cheaper by chance, blocks of .6 to 1.1 of a forward and a full backward, tight memory."""
    where = PLACEMENTS[random.choice(("linear", "v-shape", "bidirectional", "explicit"))](2)
    stages = problem(2, 2, **where).placement.stages

    def some(low: int, high: int) -> list[int]:
        return [random.randint(low, high) for _ in range(stages)]

    times: dict[str, object] = {"forward": (f := some(1, 9)), "backward": (b := some(1, 9)), "transfer": some(0, 3)}
    fused = b
    if random.random() < 0.6:
        times["weight"] = (w := some(0, 6))
        times["fused"] = fused = [max(0, x + y - z) for x, y, z in zip(b, w, some(-1, 4), strict=True)]
    if random.random() < 0.8:
        times["overlapped"] = [round((x + y) * random.uniform(0.6, 1.1)) for x, y in zip(f, fused, strict=True)]
    freed = random.choice((-1, 0, 1, 2)) if "weight" in times else 0
    memory = {"activation": 2, "freed_by_backward": freed, "capacity": random.randint(6, 10)}
    return problem(2, 2, **where, times=times, memory=memory)


def test_it_is_no_more_than_any_pattern_repeats_in_and_some_reach_it() -> None:
    claimed = reached = 0
    for seed in range(14):
        one = open_modes(Random(seed))
        graph, bound, certificates = graph_of(one), mode_bound(one_of_each_chain(one)), period_certificates(one)
        pattern = best_pattern(graph, certificates[0].value, LITTLE).pattern
        assert pattern is not None
        assert validate(simulate(one, unroll(pattern, one))) == []
        if bound is not None:
            assert bound.value / graph.microbatches <= pattern.period, seed
            claimed += certificates[0].kind == "load and memory over modes"
            reached += bound.value / graph.microbatches == pattern.period
        if pattern.overlapped:
            assert growth(one, pattern) == pattern.length, seed
    assert (claimed > 3, reached > 3) == (True, True), (claimed, reached)


def growth(one: Problem, pattern: Pattern) -> Fraction:
    """What a long run grows by for each repetition, by the simulator, which knows nothing of patterns."""
    each, ends = pattern.copies * pattern.graph.microbatches, []
    for repetitions in (60, 120):
        longer = replace(one, microbatches=repetitions * each)
        ends.append(measure(simulate(longer, unroll(pattern, longer))).makespan_ticks)
    return Fraction(ends[1] - ends[0], 60)


@pytest.mark.parametrize(("capacity", "period"), [(5, Fraction(300, 11)), (6, Fraction(600, 23)), (7, 25), (8, 24)])
def test_blocks_save_load_and_hold_memory_for_longer(capacity: int, period: Fraction) -> None:
    """Linear, 4 devices: with a share x of blocks a device works 30 - 6x; of the rest y is split, with its gradient
    sooner: stage 0 holds an activation for 4 (10 + 14x + 20 + 4x - 10y) + 10y, in 5 activations' time."""
    one = problem(4, 8, times=COSTS, memory={"capacity": capacity})
    bound = mode_bound(one)
    assert bound is not None
    assert bound.value * one.tick == period


def test_it_says_nothing_where_no_mode_is_open() -> None:
    assert mode_bound(problem(2, 1, times={"forward": 1, "backward": 1, "weight": 1}, memory={"capacity": 2})) is None
    assert mode_bound(problem(2, 1, times={"forward": 1, "backward": 2}, memory={"capacity": 2})) is None


@in_turn("seed", range(20))
def test_any_multipliers_prove_no_more(seed: int) -> None:
    """Also negative ones, which count only where a row holds with equality."""
    random = Random(seed)
    unit = one_of_each_chain(open_modes(random))
    stages = [s for s, held in enumerate(unit.microbatches_of) if held]
    modes = [mode for stage in stages for mode in bounds._modes(unit, stage)]
    rows = [*bounds._loads(unit, modes), *bounds._memory(unit, modes), *bounds._shares(stages, modes)]
    best = max(certificate.value for certificate in period_certificates(unit)) * unit.microbatches
    for _ in range(50):
        multipliers = [Fraction(random.randint(-3, 9), random.randint(1, 9)) for _ in rows]
        assert bounds._proved(unit, rows, multipliers).value <= best
