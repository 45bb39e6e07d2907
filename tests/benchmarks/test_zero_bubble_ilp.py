"""The Zero Bubble paper's integer program as a rival: true optima, exact times, and what it does not express."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

pytest.importorskip("pulp", reason="the rival of the benchmarks: pip install 'pipesched[bench]'")

from benchmarks.cases.profiles import PROFILES, unit
from benchmarks.proof import Pair, beyond, cases, contradiction, geometric_mean, markdown, measured, solve_pair
from benchmarks.rivals.cbc import IlpOutcome, exact, solve_ilp
from benchmarks.rivals.zero_bubble_ilp import Ilp
from heuristics.catalogue import HEURISTICS
from pipesched.errors import Disagreement
from pipesched.problem import placement
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.construction.timing import best_times
from solver.limits import Limits
from solver.solve import solve
from tests.support.brute_force import optimum
from tests.support.columns import Costs, Memory, build

pytestmark = pytest.mark.filterwarnings("ignore:PULP_CBC_CMD is deprecated")  # PuLP 4, which leaves it out, is excluded
SECONDS = 60  # never reached: what is asked here takes CBC a fraction of one
LIMITS = Limits(seconds=SECONDS, workers=1, deterministic=20)
PLACES = ((placement.linear(1), 3), (placement.linear(2), 2), (placement.linear(3), 2), (placement.v_shape(2), 1))


def a_problem(random: Random, where: Placement, m: int) -> Problem:
    stages = range(where.stages)
    forward, backward, weight = (tuple(random.randint(1, 6) for _ in stages) for _ in range(3))
    fused = tuple(b + w for b, w in zip(backward, weight, strict=True))
    transfer = tuple(random.randint(0, 3) for _ in stages)
    activation = tuple(random.randint(1, 3) for _ in stages)
    freed = tuple(random.randint(0, a) for a in activation)
    capacity = []
    for held in where.stages_of:
        one = sum(activation[stage] for stage in held)
        capacity.append(random.choice((None, one, random.randint(one, m * one))))
    costs = Costs(forward, backward, weight, fused, transfer)
    return build(where, m, costs, Memory(activation, freed, tuple(capacity)))


@pytest.mark.parametrize("objective", (Objective.MAKESPAN, Objective.SPAN))
@pytest.mark.parametrize(("where", "m"), PLACES, ids=lambda value: getattr(value, "name", value))
def test_its_optimum_is_the_optimum(where: Placement, m: int, objective: Objective) -> None:
    random = Random(f"{where} {m} {objective}")
    for _ in range(6):
        problem = replace(a_problem(random, where, m), objective=objective)
        found = solve_ilp(problem, SECONDS)
        best = optimum(problem, objective)
        assert best is not None
        assert found.proved
        assert found.value == best.value
        assert found.claimed == pytest.approx(best.value)
        assert found.timeline is not None
        assert validate(found.timeline) == []
        assert measure(found.timeline).value(objective) == found.value


@pytest.mark.parametrize("problem", (unit(3, 6, "span", 6), measured(PROFILES[0], 2, 4, 1)), ids=str)
def test_it_agrees_with_the_engine(problem: Problem) -> None:
    ours, theirs = solve(problem, LIMITS), solve_ilp(problem, SECONDS)
    assert ours.status is Status.OPTIMAL
    assert theirs.proved
    assert theirs.value == ours.value_ticks
    contradiction(problem, theirs, ours)


@pytest.mark.parametrize("objective", ("span", "makespan"))
def test_the_warm_start_keeps_every_row(objective: str) -> None:
    """The greedy's schedule, put into the program, is a solution of it; one tick less for the longest device is not."""
    model = Ilp(PROFILES[0].problem(4, objective, devices=4, microbatches=6))
    assert model.warm_start()
    assert model.lp.valid(1e-6)
    model.longest.setInitialValue(model.longest.varValue - 1)
    assert not model.lp.valid(1e-6)


def test_the_order_it_decodes_gets_its_best_times() -> None:
    problem = measured(PROFILES[0], 3, 6, 2)
    order = HEURISTICS["zb"].order(problem)
    known = measure(best_times(problem, order)).span
    assert measure(simulate(problem, order)).span >= known
    timeline, value = exact(problem, order)
    assert measure(timeline).span == value == known
    assert validate(timeline) == []


def test_what_it_does_not_express_is_refused() -> None:
    problem = unit(2, 2, "span")
    with pytest.raises(ValueError, match="split backwards"):
        Ilp(problem.with_stages(freed=(-1, -1)))
    with pytest.raises(ValueError, match="no duration"):
        Ilp(problem.with_stages(forward=(0, 1)))


def test_contradictions_are_errors() -> None:
    problem = unit(2, 4, "span")
    ours = solve(problem, LIMITS)
    assert ours.value_ticks == ours.lower_bound_ticks == 13
    theirs = IlpOutcome(True, ours.timeline, 13, 13.0, 13.0, 1.0)
    contradiction(problem, theirs, ours)
    contradiction(problem, replace(theirs, proved=False, value=15, claimed=15.0), ours)
    with pytest.raises(Disagreement, match="below the engine's bound"):
        contradiction(problem, replace(theirs, value=12), ours)
    with pytest.raises(Disagreement, match="CBC proved 16 optimal"):
        contradiction(problem, replace(theirs, value=16, claimed=16.0), ours)


def test_a_pair_counts_where_cbc_proves() -> None:
    pair = solve_pair(unit(2, 2, "span", name="unit"), SECONDS, 1)
    assert pair.ratio is not None
    assert pair.ours.proof is not None
    assert pair.ratio == pair.ilp.seconds / pair.ours.proof
    alone = replace(pair, ours=replace(pair.ours, proof=None, wall=4.0), ilp=replace(pair.ilp, seconds=2.0))
    assert alone.ratio == 0.5  # the engine did not prove: all of its time counts
    still_open = Pair(pair.problem, replace(pair.ilp, proved=False), pair.ours)
    assert still_open.ratio is None
    assert geometric_mean([0.5, 8.0]) == pytest.approx(2)
    text = markdown([alone, still_open], "here")
    assert "CBC proved 1 of 2, the engine 0" in text
    assert "0.5 times faster" in text


def test_the_cases_are_what_the_page_says() -> None:
    shapes = {(p.devices, p.microbatches) for p in cases()}
    assert {(p, p) for p in range(2, 9)} | {(p, 3 * p) for p in range(2, 9)} | {(4, 8)} == shapes
    assert {(p.devices, p.microbatches) for p in beyond()} == {(4, 12), (8, 24)}
    names = [problem.name for problem in (*cases(), *beyond())]
    assert len(set(names)) == len(names)
