"""Analytic bounds: numbers by hand, optima of published schedules, and the brute force that others are held to."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from benchmarks.proofs.branch import Branch
from heuristics.catalogue import HEURISTICS
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem import placement
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.relaxed.relaxations import relaxed
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.bounds.analytic.catalogue import BOUNDS, certificates
from solver.construction.timing import times_within
from tests.solver.bounds.test_certificate_values import KINDS, drawn
from tests.support.columns import Costs, Memory, build
from tests.support.drawers import tiny_unequal
from tests.support.exhaustive.optimum import optimum
from tests.support.makers import problem as problem_of
from tests.support.published import ROWS, Row
from tests.support.task_brute_force import tiny_tasks
from tests.support.tiny_problem import tiny_problem
from tests.support.tiny_weights import tiny_weights

objectives = pytest.mark.parametrize("objective", (Objective.MAKESPAN, Objective.SPAN))


def linear(m: int, times: tuple[int, int, int, int], memory: Memory, fused: int | None = None) -> Problem:
    """Equal stages on a line: F, B, W, transfer."""
    f, b, w, c = times
    p = len(memory.capacity)
    whole = b + w if fused is None else fused
    return build(placement.linear(p), m, Costs((f,) * p, (b,) * p, (w,) * p, (whole,) * p, (c,) * p), memory)


def room(p: int, activations: int | None) -> Memory:
    return Memory((1,) * p, (0,) * p, (activations,) * p)


@objectives
@pytest.mark.parametrize("seed", range(1000, 1030))
def test_the_optimum_is_a_valid_schedule_of_that_value_and_no_less(seed: int, objective: Objective) -> None:
    """Holds the brute force to the validator and to the exact times, so that it is no bound of its own."""
    problem = replace(tiny_problem(Random(seed)), objective=objective)
    best = optimum(problem, objective)
    if best is not None:
        timeline = times_within(problem, best.schedule, best.value)
        assert timeline is not None
        assert validate(timeline) == []
        assert measure(timeline).value_ticks(objective) == best.value
        assert times_within(problem, best.schedule, best.value - 1) is None


FIFO_SHAPES = (
    (placement.linear(1), 2, 3),
    (placement.linear(2), 2, 2),
    (placement.interleaved(1, 2), 1, 2),
    (placement.bidirectional(2), 2, 3),
)


@objectives
@pytest.mark.parametrize("seed", range(20))
def test_micro_batch_order_is_without_loss(seed: int, objective: Objective) -> None:
    """The exact model has passes of one kind run in micro-batch order on each stage; all orders give the same."""
    problem = tiny_problem(Random(seed), FIFO_SHAPES)
    one, other = (optimum(problem, objective, in_order=in_order) for in_order in (True, False))
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one.value == other.value


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_zb_1p_is_optimal_at_one_activation_a_stage(row: Row) -> None:
    problem = row.problem(1)
    reached = measure(simulate(problem, HEURISTICS["zb-1p"].order(problem))).span_ticks
    assert certificates(problem, Objective.SPAN)[0].value_ticks == reached


def test_the_round_trip_of_the_paper_s_first_row() -> None:
    """1102.680 ms of work, 135.016 idle before the first backward and 72.709 after the last forward."""
    problem = ROWS[0].problem(1)
    best = certificates(problem, Objective.SPAN)[0]
    assert problem.in_units(best.value_ticks) == pytest.approx(1310.405, abs=1e-9)
    assert best.kind == "round trip"
    for part in ("1102.68 ms", "135.016 ms", "72.709 ms", "1310.405 ms"):
        assert part in best.text


@pytest.mark.parametrize("objective", [Objective.SPAN, Objective.MAKESPAN])
def test_round_trips_in_a_row_in_numbers(objective: Objective) -> None:
    """Two devices, room for two: from the end of F0.j to B0.j 4 + 10 + 6 + 4 = 24, in which 3 + 5 + 2 can run.

    Eleven micro-batches: 110 of work, idle 24 - 3 at first, 24 - 7 at last, and 24 - 10 in each of four round trips.
    """
    problem = problem_of(
        2,
        11,
        times={"forward": [3, 10], "backward": [5, 6], "weight": [2, 2], "transfer": 4},
        memory={"capacity": [2, 11]},
        objective=objective.name,
    )
    kind = "round trip"
    certificate = next(one for one in certificates(problem, objective) if (one.kind, one.device) == (kind, 0))
    assert certificate.value_ticks == 110 + 21 + 17 + 4 * 14
    assert check_bound(problem, certificate).verdict is Verdict.VERIFIED


@pytest.mark.parametrize("branch", KINDS[::6], ids=lambda branch: branch.name)
def test_every_bound_names_its_device_and_says_its_value(branch: Branch) -> None:
    for problem in drawn(branch):
        for certificate in certificates(problem, problem.objective):
            assert f"evice {certificate.device}" in certificate.text
            assert amount(problem, certificate.value_ticks) in certificate.text


def test_certificates_come_strongest_first() -> None:
    values = [c.value_ticks for c in certificates(ROWS[0].problem(1), Objective.MAKESPAN)]
    assert values == sorted(values, reverse=True)
    assert len(values) >= 2 * 8


def test_bounds_that_read_memory_say_so() -> None:
    """Others give the same certificates whatever room devices have, so that partners' memory raises none of them."""
    read = set[str]()
    for number, make in product(range(40), (tiny_problem, tiny_tasks, tiny_unequal, tiny_weights)):
        one = make(Random(number))
        for bound in BOUNDS:
            if bound.name in read:
                continue  # one problem tells
            poorer = relaxed(one, bound.keeping).problem
            if bound.several_streams or poorer.view is not None:
                ample = poorer.with_room([None] * one.devices)
                same = bound.certify(poorer, one.objective) == bound.certify(ample, one.objective)
                read.update(() if same else (bound.name,))
    assert read == {bound.name for bound in BOUNDS if bound.reads_memory}


def v_problem(p: int, m: int, capacity: int) -> Problem:
    """The 6.2B model's chunks on the V placement, as its authors profiled them (microseconds)."""
    stages = 2 * p
    costs = Costs((14407,) * stages, (14380,) * stages, (9676,) * stages, (24056,) * stages, (1610,) * stages)
    memory = Memory((1,) * stages, (0,) * stages, (capacity,) * p)
    return build(placement.v_shape(p), m, costs, memory, objective=Objective.SPAN)


@pytest.mark.parametrize(("p", "m"), [(4, 8), (4, 12), (8, 16)])
def test_zbv_is_optimal_with_real_times_by_the_way_over_the_turning_device(p: int, m: int) -> None:
    problem = v_problem(p, m, 2 * p)
    best = certificates(problem, Objective.SPAN)[0]
    assert best.kind == "head and tail"
    assert best.device == p - 1
    assert best.value_ticks == measure(simulate(problem, HEURISTICS["zbv"].order(problem))).span_ticks
