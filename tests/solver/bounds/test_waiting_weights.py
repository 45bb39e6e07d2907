"""The bound by weight tasks that wait in memory: never above the optimum, and what its check finds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.checking.streams.weights import stream_weights as checked
from pipesched.files.problem_file import problem_from
from pipesched.problem.passes import BW, B, W
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import TaskSpec
from pipesched.results.evidence import StreamWeights
from solver.bounds.analytic.stream_weights import stream_weights
from solver.bounds.saving.certificates import certificates
from tests.support.columns import with_tasks
from tests.support.task_brute_force import optimum
from tests.support.tiny_weights import tiny_weights


def test_waiting_weights_prove_nothing_above_the_optimum() -> None:
    tight = offloaded = 0
    for seed in range(60):
        problem = tiny_weights(Random(seed))
        found = stream_weights(problem.keeping_activations(), problem.objective)
        try:
            best = optimum(problem, problem.objective, most_waits=4)
        except ValueError:
            continue
        if best is None or not found:
            continue
        for one in found:
            assert isinstance(one.evidence, StreamWeights)
            assert checked(problem, one.evidence) == one.value <= best, seed
        offloaded += bool(problem.network.options)
        tight += max(one.value for one in found) == best
    assert tight > 15 and offloaded > 5


def test_the_way_back_waits_for_weights_that_do_not_fit() -> None:
    """Device 1 has 3 x (4 + 5 + 6) to run from 5 on and holds one activation, so that its last backward waits for two
    weight passes: it ends at 44, and then device 0 gets its gradient at 46, which takes 1 + 5 + 6.
    """
    backward = [{"name": "combine", "on": "comm", "time": 1}, {"name": "attn", "time": 5}]
    keys = {
        "devices": 2,
        "microbatches": 3,
        "streams": ["compute", "comm"],
        "tasks": {
            "forward": [{"name": "attn", "time": 4}],
            "backward": backward,
            "weight": [{"name": "attn-w", "time": 6}],
        },
        "times": {"transfer": 2},
        "memory": {"capacity": 1, "activation": 1, "offload": {"out": 1, "in": 1, "on": ["d2h", "h2d"]}},
    }
    one = problem_from(keys)
    best, *_ = certificates(one, Objective.MAKESPAN)
    assert (best.kind, best.device) == ("waiting weight tasks", 1)
    assert best.value == (4 + 2) + (3 * (4 + 5 + 6) - 6) + (2 + 1 + 5 + 6)
    assert check_bound(one, best).verdict is Verdict.VERIFIED
    assert "the memory of device 1 holds weight tasks that wait for 6 of stream compute at most" in best.text


def with_two_weight_tasks(problem: Problem) -> Problem:
    """Each weight pass in two tasks of which the first need not wait for the end of the backward."""
    parts = {}
    for s, stage in enumerate(problem.stages):
        (weight,) = stage.tasks_of(W)
        parts |= {(kind, s): stage.tasks_of(kind) for kind in (B, BW)}
        parts[W, s] = (weight._replace(after=0), TaskSpec(weight.stream, stage.forward + 1))
        parts[BW, s] += (TaskSpec(weight.stream, stage.forward + 1),)
    return with_tasks(problem, parts)


def test_the_check_proves_of_the_evidence_just_what_the_bound_claims() -> None:
    """Also where a weight pass is several tasks, which wait for different parts of the backward."""
    seen = of_owner = 0
    for seed in range(300):
        problem = with_two_weight_tasks(tiny_weights(Random(seed)))
        problem = replace(problem, microbatches=problem.microbatches + 2)
        for one in stream_weights(problem.keeping_activations(), problem.objective):
            assert isinstance(one.evidence, StreamWeights)
            assert checked(problem, one.evidence) == one.value, seed
            owner = one.evidence.owner
            assert (owner is None) == ("left to the end of all," in one.text)
            assert owner is None or f"after device {owner} began" in one.text
            seen, of_owner = seen + 1, of_owner + (owner is not None)
    assert seen > 200 and of_owner > 50


def test_weight_passes_that_begin_at_the_head_count() -> None:
    """Device 1 runs its first weight pass at 4 + 4 + 5 or later. When 7 are left all its backwards have ended, and one
    weight pass waits at most: behind 13 it has run two of them and two backwards.
    """
    keys = {"devices": 2, "microbatches": 3, "times": {"forward": 4, "backward": 5, "weight": 6}}
    one = problem_from({**keys, "memory": {"capacity": 1, "activation": 1}})
    assert checked(one, StreamWeights(1, "compute", None, one.tick, 13, 7)) == 13 + 2 * 6 + 2 * 5 + 7
    assert checked(one, StreamWeights(1, "compute", None, one.tick, 14, 7)) == 14 + 1 * 6 + 1 * 5 + 7
