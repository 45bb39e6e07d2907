"""Unequal micro-batches: solves and bounds against every order of tiny problems, which the tool's chains know nothing of."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random
from threading import Event

import pytest

from benchmarks.proofs.unequal_problems import draw_unequal, optimum_of, solved
from pipesched import problem_from, solve
from pipesched.errors import BadInput
from pipesched.problem.chains.microbatch_chains import is_job_shop, microbatch_chains, without_scale
from pipesched.problem.passes import F, Pass
from pipesched.problem.problem import Objective, Problem
from pipesched.results.solution import Status
from pipesched.schedule.chain_timelines import timeline_back, timeline_into
from pipesched.schedule.metrics import measure
from pipesched.schedule.rescale import value_of
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.backends.destructive_bound import RefutedValue, destructive_bounds
from solver.construction.list_scheduling import list_schedules
from solver.construction.timing import best_times
from tests.support.counted import counted
from tests.support.task_brute_force import optimum

TINY = {"devices": 2, "microbatches": 3, "times": {"forward": 2, "backward": 4, "transfer": 1}}


def unequal(order: str, **keys: object) -> Problem:
    return problem_from(TINY | {"microbatch_scale": [1, 0.5, 1.5], "microbatch_order": order} | keys)


def test_a_solve_finds_the_optimum() -> None:
    proved = 0
    for seed in (3, 4, 5):
        problem = draw_unequal(Random(seed))
        best = optimum_of(problem)
        assert best is not None
        low, high = solved(problem, 0.05, seed)
        assert low <= best <= high, seed
        proved += low == high
    assert proved == 3


@pytest.mark.parametrize("order", ("fixed", "free"))
def test_a_schedule_is_the_same_as_one_of_the_chains(order: str) -> None:
    problem = unequal(order, memory={"capacity": 3})
    chains = microbatch_chains(problem)
    for schedule in list_schedules(problem):
        own = simulate(problem, schedule)
        other = timeline_into(chains, own)
        assert validate(own) == validate(other) == []
        assert measure(own) == measure(other)
        assert dict(timeline_back(chains, other).starts) == dict(own.starts)


def test_an_order_that_is_free_may_be_better() -> None:
    fixed, free = (solve(unequal(order), counted(2)) for order in ("fixed", "free"))
    assert fixed.status is free.status is Status.OPTIMAL
    assert fixed.value is not None
    assert free.value is not None
    assert free.value < fixed.value
    # The plain reading of the order: forwards of each stage, and backwards, one after the other.
    assert fixed.timeline is not None
    for device in range(2):
        for kinds in (("F",), ("B", "BW")):
            found = [p.microbatch for p in fixed.timeline.schedule.passes_on(device) if p.kind in kinds]
            assert found == sorted(found)


def test_a_chain_for_each_factor_or_for_each_run_of_equal_ones() -> None:
    scale = {"microbatches": 5, "microbatch_scale": [2, 1, 1, 2, 1]}
    free, fixed = (microbatch_chains(unequal(order, **scale)) for order in ("free", "fixed"))
    assert free.microbatches == (0, 3, 1, 2, 4)
    assert free.problem.walks.shares == (2, 3)
    assert fixed.microbatches == (0, 1, 2, 3, 4)
    assert fixed.problem.walks.shares == (1, 2, 1, 1)
    assert [stage.forward for stage in free.problem.stages] == [4, 2, 4, 2]


def test_unequal_microbatches_have_no_period() -> None:
    with pytest.raises(BadInput, match="period"):
        solve(replace(unequal("free"), objective=Objective.PERIOD))


def test_a_start_in_the_terms_of_the_problem() -> None:
    problem = unequal("free")
    known = simulate(problem, next(iter(list_schedules(problem))))
    found = solve(problem, counted(0), start=known)
    assert found.value is not None
    assert Fraction(found.value) <= measure(known).makespan_ticks * problem.tick
    assert found.timeline is not None
    assert found.timeline.problem.walks.scale == problem.walks.scale


def test_tasks_on_several_streams_scale_and_keep_the_order() -> None:
    values: dict[str, float] = {}
    for order in ("fixed", "free"):
        problem = problem_from(
            {
                "devices": 2,
                "microbatches": 2,
                "streams": ["compute", "comm"],
                "tasks": {
                    "forward": [{"name": "attn", "time": 2}, {"name": "send", "on": "comm", "time": 1}],
                    "backward": [{"name": "attn", "time": 3}],
                },
                "microbatch_scale": [2, 0.5],
                "microbatch_order": order,
            }
        )
        found = solve(problem, counted(0.5))
        assert found.timeline is not None
        assert found.status is Status.OPTIMAL
        assert validate(found.timeline) == []
        assert found.value is not None
        values[order] = found.value
        begins = [found.timeline.start(Pass(F, stage, j)) for stage in range(2) for j in range(2)]
        assert order == "free" or (begins[0] < begins[1] and begins[2] < begins[3])
        if order == "free":
            best = optimum(without_scale(problem), Objective.MAKESPAN)
            assert best is not None
            assert found.value == best * problem.tick
    assert values["free"] < values["fixed"]


def test_a_job_shop_is_bounded_by_intervals() -> None:
    """Unequal micro-batches in any order, memory ample: what is refuted is all below the optimum, and no more."""
    problem = unequal("free", times={"forward": [2, 4], "backward": [4, 5], "transfer": 1})
    chains = without_scale(problem)
    assert is_job_shop(chains)
    assert not is_job_shop(without_scale(unequal("fixed")))
    assert not is_job_shop(without_scale(unequal("free", memory={"capacity": 3})))
    best = optimum_of(problem)
    assert best is not None
    known = [Fraction(0), best + 9]
    limits = counted(100)
    for found in destructive_bounds(chains, limits, 60, lambda: (known[0], known[1]), Event()):
        if isinstance(found, RefutedValue):
            known[0] = Fraction(found.value)
        else:
            known[1] = Fraction(value_of(chains, best_times(chains, found)))
    assert known == [best, best]


def test_published_orders_that_recompute_or_offload_are_tried_on_unequal_microbatches() -> None:
    """They do not fit as they are written; the waits that memory needs are found on the chains."""
    problem = problem_from(
        {
            "devices": 2,
            "microbatches": 3,
            "streams": ["compute", "copy"],
            "times": {"forward": 4, "backward": 1, "transfer": 1},
            "memory": {
                "capacity": 14,
                "activation": 4,
                "offload": {"out": 1, "in": [1, 4], "on": "copy"},
                "recompute": [{"name": "a", "time": 4, "keeps": 1}, {"name": "b", "time": 3, "keeps": 1}],
                "decide": {"offload": "free", "recompute": "free"},
            },
            "objective": "span",
            "microbatch_scale": [2, 2, 1],
            "microbatch_order": "fixed",
        }
    )
    found = solve(problem, counted(4))
    assert (found.status, found.value) == (Status.OPTIMAL, 37)


def test_other_orders_of_passes_that_wait_for_themselves_are_left_out() -> None:
    """A backward that receives before its recomputation has ended precedes it in the order of passes: was a defect."""
    one = problem_from(
        {
            "devices": 2,
            "microbatches": 2,
            "streams": ["compute", "comm"],
            "times": {"forward": [3, 2], "backward": [3, 5], "transfer": {"time": 2, "on": "comm", "both": True}},
            "memory": {
                "capacity": 1,
                "recompute": [{"name": "full", "time": 2}, {"name": "attention", "time": 1, "keeps": 0.5}],
            },
            "microbatch_scale": [1, 0.5],
            "microbatch_order": "free",
        }
    )
    found = solve(one, counted(4))
    assert found.notes == ()
    assert (found.status, found.value) == (Status.OPTIMAL, 40 * one.tick)
