"""The check of diagrams of how activations are held: never above the optimum, by hand, and what is none is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil
from random import Random

import pytest

from benchmarks.proofs.memory_options import exact
from pipesched.checking.check import check_bound
from pipesched.checking.diagram.activation_modes import activation_mode_diagram
from pipesched.checking.diagram.by_state import ByState
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError, Verdict
from pipesched.problem import placement
from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.kv_cache import KvCache
from pipesched.problem.memory_options import Offload, Recomputation
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import COMPUTE, Stage
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from tests.support.diagrams import bidirectional, v_shape
from tests.support.small_memory import small_memory
from tests.support.task_brute_force import TooManyOrdersError, optimum
from tests.support.tiny_memory import tiny_memory, tiny_unequal_memory


def ways(*stages: int, below: int = 1_000, device: int | None = None) -> Diagram:
    return Diagram(stages, below=below, device=device, ways=True)


def diagrams(one: Problem, below: int) -> list[Diagram]:
    """Of each device's stages, and of all where that is one of the problem."""
    where, makespan = one.placement, one.objective == Objective.MAKESPAN
    every = [stage for chain in where.chains for stage in chain if one.microbatches_of[stage]]
    found = list[Diagram]()
    for device in range(where.devices):
        own = [stage for stage in every if where.stage_device[stage] == device]
        found += [ways(*own, below=below, device=None if makespan else device)] if own else []
    if makespan or len(where.chains) == 1:
        found.append(ways(*every, below=below, device=None if makespan else where.stage_device[every[0]]))
    return found


def brute_force(one: Problem) -> Fraction | int | None:
    try:
        return optimum(one, one.objective, 4)
    except TooManyOrdersError:
        return None


def by_model(one: Problem) -> Fraction | int | None:
    found = None if why_infeasible(one) else exact(one)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("draw", "number", "least"),
    [(tiny_memory, 30, brute_force), (tiny_unequal_memory, 12, brute_force), (small_memory, 12, by_model)],
)
def test_no_schedule_is_below(
    draw: Callable[[Random], Problem], number: int, least: Callable[[Problem], Fraction | int | None]
) -> None:
    """Of all stages it is mostly the optimum; any value above it that orders end before changes nothing."""
    seen, attained = 0, 0
    for one in map(draw, map(Random, range(number))):
        if (best := least(one)) is None:
            continue
        chains = without_scale(one)
        every = diagrams(chains, ceil(best) + 3)
        found = [activation_mode_diagram(chains, diagram) for diagram in every]
        assert max(found) <= best, one
        for value, diagram in zip(found, every, strict=True):
            for below in (max(0, value - 1), value + 1):
                assert activation_mode_diagram(chains, replace(diagram, below=below)) == min(below, value)
        seen, attained = seen + 1, attained + (max(found) == best)
    assert seen > number / 3
    assert attained > seen / 2


def two_stages(stage: Stage, room: int | None, behind: int = 4) -> Problem:
    """Two micro-batches; the second stage takes so long forward and so long back, and has all the memory it needs."""
    other = Stage(behind, behind, None if stage.weight is None else 0, behind)
    return Problem(placement.linear(2), 2, (stage, other), (Pool(room), Pool()))


SHORT = Stage(1, 1, None, 1, activation=2)


def test_what_is_computed_again_takes_time_and_memory_before_the_gradient() -> None:
    """F0 F1, R0 at once, B0 at 9, only then is there room for R1 until 11, B1 until 12; else F1 waits for B0."""
    again = replace(SHORT, recompute=(Recomputation("full", 1, 1),))
    assert activation_mode_diagram(two_stages(SHORT, 3), ways(0)) == 20
    assert activation_mode_diagram(two_stages(again, 3), ways(0)) == 12
    assert activation_mode_diagram(two_stages(again, 4), ways(0)) == 11  # room for both
    assert activation_mode_diagram(two_stages(replace(again, may_keep=False), None), ways(0)) == 11  # while it waits
    alone = Problem(placement.linear(1), 2, (replace(again, may_keep=False),), (Pool(2),))
    assert activation_mode_diagram(alone, ways(0)) == 6


def test_the_cheapest_of_several_ways_is_found() -> None:
    """By the second way, nothing is left of both and the other's forward is short; a longer one leaves too much."""
    several = replace(SHORT, recompute=(Recomputation("long", 9, 1), Recomputation("some", 2, 1)))
    assert activation_mode_diagram(two_stages(several, 3), ways(0)) == 13
    assert activation_mode_diagram(two_stages(replace(several, recompute=several.recompute[:1]), 3), ways(0)) == 20


def test_the_end_of_a_copy_out_gives_room_and_the_start_of_a_copy_back_takes_it() -> None:
    """F0 until 1, O0 until 3, F1 until 4, O1 until 6, L0 until 9, B0 until 10, L1 until 13, B1 until 14."""
    copied = Stage(1, 1, None, 1, offload=Offload(2, 3, "d2h", "h2d", 1))
    assert activation_mode_diagram(two_stages(copied, 1), ways(0)) == 14
    assert activation_mode_diagram(two_stages(copied, 2), ways(0)) == 11
    on_compute = replace(copied, offload=Offload(2, 3, COMPUTE, COMPUTE, 1))
    # F1 starts as late; now B0 takes the stream at 9 and L1 follows it.
    assert activation_mode_diagram(two_stages(on_compute, 1), ways(0)) == 14
    never_kept = Problem(placement.linear(1), 1, (replace(copied, may_keep=False),), (Pool(1),))
    assert activation_mode_diagram(never_kept, ways(0)) == 1 + 2 + 3 + 1


def test_a_copy_back_waits_for_the_memory_of_a_gradient_that_runs() -> None:
    """One activation: L1 follows the end of B0, at 13; if it could run beside it, all would end at 17."""
    copied = Stage(1, 4, None, 4, offload=Offload(2, 3, "d2h", "h2d", 1))
    assert activation_mode_diagram(two_stages(copied, 1), ways(0)) == 9 + 4 + 3 + 4
    assert activation_mode_diagram(two_stages(replace(copied, may_keep=False), 2), ways(0)) == 9 + 4 + 4


def test_a_copy_back_waits_for_the_memory_of_weight_passes() -> None:
    """One activation: F, O, L, B, W of one micro-batch after the other. Two: L1 beside B0 from 6 on, both W behind B1."""
    copied = Stage(1, 4, 3, 7, offload=Offload(2, 3, "d2h", "h2d", 1), may_keep=False)
    found = [activation_mode_diagram(Problem(placement.linear(1), 2, (copied,), (Pool(n),)), ways(0)) for n in (1, 2)]
    assert found == [2 * (1 + 2 + 3 + 4 + 3), 6 + 2 * 4 + 2 * 3]


def test_weight_passes_run_where_what_they_hold_is_needed() -> None:
    """B0 until 10, W0 until 15, F1 until 16, B1 until 25, W1 until 30; or F1 at 10, B1 until 20, W1 until 25."""
    split = Stage(1, 1, 5, 6, activation=1)
    assert activation_mode_diagram(two_stages(split, 1), ways(0)) == 30
    assert activation_mode_diagram(two_stages(replace(split, freed=1), 1), ways(0)) == 25
    # In one go it takes as long.
    assert activation_mode_diagram(two_stages(replace(split, backward=6, fused=6, weight=None), 1), ways(0)) == 30


def test_two_devices_wait_for_each_other() -> None:
    """Room for one activation each: R1 until 13, and B1 of the second stage until 13, a tick away from the first."""
    stage = Stage(2, 3, None, 3, transfer=1)
    again = replace(stage, recompute=(Recomputation("full", 1, 0),))
    one = Problem(placement.linear(2), 2, (again, stage), (Pool(1), Pool(1)))
    assert [activation_mode_diagram(one, ways(*kept)) for kept in ((0,), (1,), (0, 1))] == [16, 17, 17]
    assert activation_mode_diagram(one.keeping_activations(), ways(0, 1)) == 24
    span = replace(one, objective=Objective.SPAN)
    assert activation_mode_diagram(span, ways(0, 1, device=0)) == 17
    assert activation_mode_diagram(span, ways(1, device=1)) == 10


def test_nothing_that_takes_no_time_or_no_memory_is_in_the_way() -> None:
    nothing = Stage(0, 0, None, 0, activation=0, offload=Offload(0, 0, "copy", "copy", 0), may_keep=False)
    assert (
        activation_mode_diagram(Problem(placement.linear(2), 3, (nothing, nothing), (Pool(0), Pool(0))), ways(0, 1))
        == 0
    )


def test_what_ends_at_the_value_or_later_is_left_out() -> None:
    again = two_stages(replace(SHORT, recompute=(Recomputation("full", 1, 1),)), 3)
    assert [activation_mode_diagram(again, ways(0, below=below)) for below in (0, 1, 11, 12, 13)] == [0, 1, 11, 12, 12]


def test_where_nothing_fits_no_order_ends_before_any_value() -> None:
    assert activation_mode_diagram(two_stages(SHORT, 1), ways(0, below=77)) == 77


@pytest.mark.parametrize(
    "diagram",
    [
        ways(),
        ways(1, 0),
        ways(0, 0),
        ways(0, 9),
        replace(ways(0), below=None),
        ways(0, below=-1),
        ways(0, below=2**50 + 1),
        replace(ways(0), width=8),
        replace(ways(0), guide=(0,)),
        replace(ways(0), rows=8),
        ways(0, device=0),
    ],
)
def test_what_is_no_such_diagram_is_refused(diagram: Diagram) -> None:
    with pytest.raises(RefusedEvidenceError):
        activation_mode_diagram(two_stages(SHORT, 4), diagram)


def test_what_counts_is_what_the_objective_says() -> None:
    span = v_shape(2, 2, 3)
    for diagram in (ways(0, 3, device=0), ways(1, 2, device=1), ways(0, 1, 2, 3, device=0), ways(0, 2, device=0)):
        assert activation_mode_diagram(span, diagram) > 0
    for diagram in (ways(0, 3), *(ways(*kept, device=n) for kept, n in (((1, 2), 0), ((0, 3), 7), ((1, 3), 0)))):
        with pytest.raises(RefusedEvidenceError):
            activation_mode_diagram(span, diagram)
    for diagram in (ways(0, 1, device=1), ways(1, 2, 3, device=1)):
        with pytest.raises(RefusedEvidenceError):
            activation_mode_diagram(span, diagram)
    for other in (Objective.PERIOD, Objective.ITERATION):
        with pytest.raises(RefusedEvidenceError):
            activation_mode_diagram(replace(span, objective=other), ways(0, 3, device=0))
    without = Problem(placement.bidirectional(2), 1, (SHORT,) * 4)
    with pytest.raises(RefusedEvidenceError):
        activation_mode_diagram(without, ways(*without.placement.chains[0], *without.placement.chains[1]))


def test_what_the_check_has_not_heard_of_is_not_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    one = two_stages(SHORT, 4)
    keeping = replace(one, stages=(replace(SHORT, kv_cache=KvCache(1)), one.stages[1]))
    for other in (keeping, bidirectional(2, 2, 2)):
        with pytest.raises(NotCoveredError):
            activation_mode_diagram(other, ways(*other.placement.chains[0]))
    monkeypatch.setattr(ByState, "most", 3)
    with pytest.raises(NotCoveredError, match="too many orders"):
        activation_mode_diagram(one, ways(0))


def test_a_certificate_is_verified_and_no_tick_more() -> None:
    one = two_stages(replace(SHORT, recompute=(Recomputation("full", 1, 1),)), 3)
    genuine = Certificate("decision diagram", 12, "", 0, ways(0))
    assert check_bound(one, genuine).verdict is Verdict.VERIFIED
    assert check_bound(one, replace(genuine, value_ticks=13)).verdict is Verdict.REFUSED
    assert check_bound(one, replace(genuine, evidence=ways(0, below=11))).verdict is Verdict.REFUSED
    assert check_bound(one, replace(genuine, kind="load")).verdict is Verdict.REFUSED
    assert check_bound(bidirectional(2, 2, 2), replace(genuine, evidence=ways(0))).verdict is Verdict.NOT_VERIFIED
