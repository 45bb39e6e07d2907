"""Bounds of problems whose passes are several tasks: those for one stream are refused, the load of a stream holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import pytest

from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.checking.streams.head_and_tail import stream_head_and_tail as checked_around
from pipesched.checking.streams.memory import stream_memory as checked_memory
from pipesched.checking.streams.tasks import stream_tasks as checked_tasks
from pipesched.files.problem_file import problem_from
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.passes import B, F
from pipesched.problem.placement import Placement, interleaved, linear
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import COMPUTE, TaskSpec
from pipesched.results.evidence import AroundStream, StreamMemory, StreamTasks
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from solver.bounds.analytic.catalogue import BOUNDS, certificates
from solver.bounds.analytic.stream_head_and_tail import stream_head_and_tail
from solver.bounds.analytic.stream_heads_and_tails import stream_heads_and_tails
from solver.bounds.analytic.stream_memory import stream_memory
from solver.construction.list_scheduling import sequential
from solver.limits import Limits
from solver.solve import solve
from tests.support.columns import Costs, Memory, build, with_tasks
from tests.support.expert_parallel import mean_layers
from tests.support.makers import random_order, random_problem, with_parts
from tests.support.task_brute_force import optimum, tiny_tasks


def copies(ticks: int, microbatches: int = 4) -> Problem:
    """One device whose forwards end with a copy of so many ticks on a stream of its own."""
    parts = {(F, 0): (TaskSpec(COMPUTE, 1), TaskSpec("d2h", ticks))}
    costs = Costs((1 + ticks,), (1,), None, (1,), (0,))
    return with_tasks(build(linear(1), microbatches, costs, Memory((0,), (0,), (None,))), parts)


@pytest.mark.parametrize("objective", (Objective.MAKESPAN, Objective.SPAN))
def test_the_stream_with_most_work_bounds(objective: Objective) -> None:
    loads = [[one for one in certificates(copies(ticks), objective) if one.kind == "load"] for ticks in (3, 1)]
    assert [[one.value for one in found] for found in loads] == [[12, 8], [8, 4]]
    assert "Stream d2h of device 0" in loads[0][0].text


@pytest.mark.parametrize("objective", (Objective.MAKESPAN, Objective.SPAN))
def test_a_stream_waits_for_its_first_task_and_is_waited_for(objective: Objective) -> None:
    """The copies begin behind a forward of one tick, and a backward of one tick follows the last of them."""
    (found, *_) = certificates(copies(3), objective)
    assert (found.kind, found.value) == ("stream head and tail", 14)
    assert "Stream d2h of device 0 cannot begin before 1" in found.text


def test_a_stream_that_a_mode_leaves_idle_has_no_head() -> None:
    """Fused, the backward does without the copy, and all takes three ticks."""
    parts = {(B, 0): (TaskSpec("d2h", 7), TaskSpec(COMPUTE, 7))}
    costs = Costs((1,), (14,), (1,), (2,), (0,))
    one = with_tasks(build(linear(1), 1, costs, Memory((0,), (0,), (None,))), parts)
    assert next(each.value for each in certificates(one, Objective.MAKESPAN)) == 3


def test_a_stream_that_blocks_leave_idle_proves_nothing() -> None:
    one = copies(3)
    overlapped = one.with_stages(overlapped=(1,))
    assert all("compute" in found.text for found in certificates(overlapped, Objective.SPAN))


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
        owners = [None] if one.objective is Objective.MAKESPAN else list(range(one.devices))
        around, sets = (
            {(found.device, found.evidence.stream): found for found in bound(one, one.objective)}  # type: ignore[union-attr]
            for bound in (stream_head_and_tail, stream_heads_and_tails)
        )
        for where in product(range(one.devices), one.streams):
            best = max(checked(checked_around, one, AroundStream(*where, owner)) for owner in owners)
            assert (around[where].value if where in around else -1) == best
            several += best > 0
            if where in sets:
                assert checked(checked_tasks, one, sets[where].evidence) == sets[where].value
                assert ("left to the end of all:" in sets[where].text) == (one.objective is Objective.MAKESPAN)
                for owner in owners * 4:
                    some = StreamTasks(*where, owner, one.tick, random.randint(0, 9), random.randint(0, 9))
                    assert checked(checked_tasks, one, some) <= sets[where].value
    assert several > 200


def test_a_stream_is_sure_to_run_if_any_stage_uses_it_in_every_mode() -> None:
    """Stage 0 copies in its forward; stage 1 on the same device copies only where its backward is split."""
    where = interleaved(1, 2)
    costs = Costs((1, 1), (1, 2), (1, 1), (2, 3), (0, 0))
    copy, alone = TaskSpec("d2h", 1), TaskSpec(COMPUTE, 1)
    parts = {(F, 0): (alone, copy), (B, 1): (alone, copy)}
    one = with_tasks(build(where, 2, costs, Memory((0, 0), (0, 0), (None,))), parts)
    found = [c for c in stream_head_and_tail(one, Objective.MAKESPAN) if "d2h" in c.text]
    assert [c.value for c in found] == [1 + 2 + 2]


def test_bounds_for_one_stream_are_refused() -> None:
    """They would take the copy for time of the device, and prove more than a schedule has."""
    one = copies(3)
    several = {"load", "stream head and tail", "stream heads and tails", "stream memory", "waiting weight tasks"}
    assert {bound.name for bound in BOUNDS if bound.several_streams} == several
    assert {found.kind for found in certificates(one, Objective.MAKESPAN)} == several - {
        "stream memory",
        "waiting weight tasks",
    }
    passes_in_one_task = with_tasks(one, {})
    assert {found.kind for found in certificates(passes_in_one_task, Objective.MAKESPAN)} > {"load"}


@pytest.mark.parametrize("seed", range(60))
def test_no_certificate_is_above_a_schedule(seed: int) -> None:
    random = Random(seed)
    problem = with_parts(random_problem(random, parts=False), random)
    if problem.network.one_task_each or why_infeasible(problem) is not None:
        return
    for schedule in (sequential(problem), random_order(problem, random, 0.5)):
        metrics = measure(simulate(problem, schedule))
        for objective in (Objective.MAKESPAN, Objective.SPAN):
            found = certificates(problem, objective)
            assert found[0].value <= metrics.value(objective)
            assert len({one.device for one in found}) == problem.devices


@pytest.mark.parametrize(
    ("objective", "where", "value"),
    (
        (Objective.MAKESPAN, linear(4), 33833),
        (Objective.SPAN, linear(4), 33833),
        (Objective.MAKESPAN, interleaved(4, 2), 59805),
    ),
)
def test_what_comes_behind_the_first_round_trip_bounds(objective: Objective, where: Placement, value: int) -> None:
    """On device 0 all but its first tasks wait for a backward to come back."""
    (found, *_) = certificates(mean_layers(where, 8), objective)
    assert (found.kind, found.device, found.value) == ("stream heads and tails", 0, value)


def test_heads_and_tails_prove_nothing_above_the_optimum() -> None:
    tight = 0
    for seed in range(40, 80):
        problem = tiny_tasks(Random(seed))
        try:
            best = None if problem.network.one_task_each else optimum(problem, problem.objective)
        except ValueError:
            continue
        values = [one.value for one in stream_heads_and_tails(problem, problem.objective)]
        assert best is None or max(values, default=0) <= best, seed
        tight += max(values, default=None) == best
    assert tight > 10


def test_forwards_wait_for_what_is_given_back() -> None:
    """Two of four forwards fit on device 0. Gradients arrive there after 20 and 28 ticks and take 4, so the last forward
    begins after 32, and 22 ticks follow its first task.
    """
    forward = [{"name": "attn", "time": 2}, {"name": "dispatch", "on": "comm", "time": 1}]
    backward = [{"name": "combine", "on": "comm", "time": [0, 8]}, {"name": "attn", "time": [4, 2]}]
    one = problem_from(
        {
            "devices": 2,
            "microbatches": 4,
            "streams": ["compute", "comm"],
            "tasks": {"forward": forward, "backward": backward},
            "times": {"transfer": 2},
            "memory": {"capacity": [2, 4], "activation": 1},
        }
    )
    found = {one.device: one for one in stream_memory(one, Objective.MAKESPAN) if "stream compute" in one.text}
    assert found[0].value == (20 + 8 + 4) + 2 + (1 + 2 + 3 + 8 + 2 + 2 + 4)
    assert "lets forwards run 6 of stream compute before that" in found[0].text
    assert solve(one, Limits(seconds=60, workers=1)).value == found[0].value + 1


def test_memory_proves_nothing_above_the_optimum() -> None:
    """In the last eight cases it proves more than all other bounds of streams."""
    tight = stronger = 0
    for seed in (*range(40), 89, 165, 174, 198, 326, 370, 378, 396):
        problem = tiny_tasks(Random(seed))
        if problem.network.one_task_each or problem.network.options or all(room is None for room in problem.room):
            continue
        try:
            best = optimum(problem, problem.objective)
        except ValueError:
            continue
        value = max((one.value for one in stream_memory(problem, problem.objective)), default=0)
        assert best is None or value <= best, seed
        others = [
            one.value
            for one in certificates(problem, problem.objective)
            if one.kind not in ("stream memory", "waiting weight tasks")
        ]
        tight, stronger = tight + (value == best), stronger + (value > max(others))
    assert tight > 3 and stronger == 8


def test_no_other_instant_and_tail_prove_more_of_memory() -> None:
    """What the check finds at instants and tails that were not chosen."""
    random, seen = Random(2), 0
    for few in map(tiny_tasks, map(Random, range(150))):
        problem = replace(few, microbatches=4 * few.microbatches)
        if problem.network.one_task_each or problem.network.options or problem.chain_shares:
            continue
        for one in stream_memory(problem, problem.objective):
            own = one.evidence
            assert isinstance(own, StreamMemory)
            assert checked(checked_memory, problem, own) == one.value
            for _ in range(12):
                other = replace(own, head=random.randint(0, 60), tail=random.randint(0, 9))
                assert checked(checked_memory, problem, other) <= one.value
            seen += 1
    assert seen > 50
