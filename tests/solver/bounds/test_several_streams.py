"""Bounds of problems whose passes are several tasks: those for one stream are refused, the load of a stream holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import pytest

from benchmarks.cases.drawn_tasks import drawn_tasks
from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.checking.streams.memory import stream_memory as checked_memory
from pipesched.checking.streams.tasks import stream_tasks as checked_tasks
from pipesched.checking.streams.weights import stream_weights as checked_weights
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.placement import linear
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import COMPUTE, TaskSpec
from pipesched.results.evidence import StreamMemory, StreamTasks, StreamWeights
from pipesched.schedule.metrics import measure
from solver.bounds.analytic.catalogue import BOUNDS, certificates
from solver.bounds.analytic.stream_heads_and_tails import stream_heads_and_tails
from solver.bounds.analytic.stream_memory import stream_memory
from solver.bounds.analytic.stream_weights import stream_weights
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.tasks.dispatch import expanded
from tests.support.columns import Costs, Memory, build, with_tasks
from tests.support.task_brute_force import tiny_tasks
from tests.support.tiny_weights import tiny_weights


def copies(ticks: int, microbatches: int = 4) -> Problem:
    """One device whose forwards end with a copy of so many ticks on a stream of its own."""
    parts = {(F, 0): (TaskSpec(COMPUTE, 1), TaskSpec("d2h", ticks))}
    costs = Costs((1 + ticks,), (1,), None, (1,), (0,))
    return with_tasks(build(linear(1), microbatches, costs, Memory((0,), (0,), (None,))), parts)


@pytest.mark.parametrize("objective", (Objective.MAKESPAN, Objective.SPAN))
def test_the_stream_with_most_work_bounds(objective: Objective) -> None:
    loads = [[one for one in certificates(copies(ticks), objective) if one.kind == "load"] for ticks in (3, 1)]
    assert [[one.value_ticks for one in found] for found in loads] == [[12, 8], [8, 4]]
    assert "Stream d2h of device 0" in loads[0][0].text


def checked(argument: Callable[[Problem, Any], Fraction | int], one: Problem, evidence: object) -> Fraction | int:
    """What the check of bounds finds by the same argument; less than nothing where it says nothing."""
    try:
        return argument(one, evidence)
    except (NotCoveredError, RefusedEvidenceError):
        return -1


def test_each_stream_is_bounded_by_what_the_check_finds_for_it_and_no_less() -> None:
    """The check is written without the bounds: of each stream the strongest of all devices' spans."""
    random, several = Random(1), 0
    for one in map(tiny_tasks, map(Random, range(150))):
        if one.network.one_task_each:
            continue
        owners = [None] if one.objective == Objective.MAKESPAN else list(range(one.devices))
        sets = {
            (found.device, found.evidence.stream): found  # type: ignore[union-attr]
            for found in stream_heads_and_tails(one, one.objective)
        }
        for where in product(range(one.devices), one.streams):
            whole = max(checked(checked_tasks, one, StreamTasks(*where, owner, one.tick, 0, 0)) for owner in owners)
            assert (where in sets) == (whole >= 0)
            if where in sets:
                several += 1
                assert checked(checked_tasks, one, sets[where].evidence) == sets[where].value_ticks
                assert ("left to the end of all:" in sets[where].text) == (one.objective == Objective.MAKESPAN)
                for owner in owners * 4:
                    some = StreamTasks(*where, owner, one.tick, random.randint(0, 9), random.randint(0, 9))
                    assert checked(checked_tasks, one, some) <= sets[where].value_ticks
    assert several > 200


def test_bounds_for_one_stream_are_refused() -> None:
    """They would take the copy for time of the device, and prove more than a schedule has."""
    one = copies(3)
    of_memory = {"stream memory", "memory over time of tasks", "waiting weight tasks"}
    several = {"load", "stream heads and tails"} | of_memory
    assert {bound.name for bound in BOUNDS if bound.several_streams} == several
    assert {found.kind for found in certificates(one, Objective.MAKESPAN)} == several - of_memory
    passes_in_one_task = with_tasks(one, {})
    assert {found.kind for found in certificates(passes_in_one_task, Objective.MAKESPAN)} > {"load"}


def test_memory_over_time_proves_most_where_memory_is_short() -> None:
    """Exchanges between experts with memory for a few activations, below a schedule."""
    short = next(one for one in drawn_tasks(3) if one.name.startswith("3-1 "))
    assert certificates(short, short.objective)[0].kind == "memory over time of tasks"
    schedule = next(iter(expanded(jobs_of(short), sequential(short))))
    assert certificates(short, short.objective)[0].value_ticks <= measure(best_times(short, schedule)).makespan_ticks


def test_no_other_instant_and_tail_prove_more_of_memory() -> None:
    """What the check finds at instants and tails that were not chosen."""
    random, seen = Random(2), 0
    for few in map(tiny_tasks, map(Random, range(150))):
        problem = replace(few, microbatches=4 * few.microbatches)
        if problem.network.one_task_each or problem.network.options or problem.walks.shares:
            continue
        for one in stream_memory(problem, problem.objective):
            own = one.evidence
            assert isinstance(own, StreamMemory)
            assert checked(checked_memory, problem, own) == one.value_ticks
            for _ in range(12):
                other = replace(own, head=random.randint(0, 60), tail=random.randint(0, 9))
                assert checked(checked_memory, problem, other) <= one.value_ticks
            seen += 1
    assert seen > 50


def with_two_weight_tasks(problem: Problem) -> Problem:
    """Each weight pass in two tasks of which the first need not wait for the end of the backward."""
    parts = {}
    for s, stage in enumerate(problem.stages):
        (weight,) = stage.tasks_of(W)
        parts |= {(kind, s): stage.tasks_of(kind) for kind in (B, BW)}
        parts[W, s] = (weight._replace(after=0), TaskSpec(weight.stream, stage.forward + 1))
        parts[BW, s] += (TaskSpec(weight.stream, stage.forward + 1),)
    return with_tasks(problem, parts)


def test_the_check_proves_of_waiting_weights_just_what_the_bound_claims() -> None:
    """Also where a weight pass is several tasks, which wait for different parts of the backward."""
    seen = of_owner = 0
    for seed in range(300):
        problem = with_two_weight_tasks(tiny_weights(Random(seed)))
        problem = replace(problem, microbatches=problem.microbatches + 2)
        for one in stream_weights(problem.keeping_activations(), problem.objective):
            assert isinstance(one.evidence, StreamWeights)
            assert checked_weights(problem, one.evidence) == one.value_ticks, seed
            owner = one.evidence.owner
            assert (owner is None) == ("left to the end of all," in one.text)
            assert owner is None or f"after device {owner} began" in one.text
            seen, of_owner = seen + 1, of_owner + (owner is not None)
    assert seen > 200 and of_owner > 50
