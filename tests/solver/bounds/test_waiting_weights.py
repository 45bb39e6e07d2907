"""The bound by weight tasks that wait in memory: never above the optimum, and what its check finds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pipesched.checking.streams.weights import stream_weights as checked
from pipesched.problem.passes import BW, B, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import TaskSpec
from pipesched.results.evidence import StreamWeights
from solver.bounds.analytic.stream_weights import stream_weights
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
            assert checked(problem, one.evidence) == one.value_ticks <= best, seed
        offloaded += bool(problem.network.options)
        tight += max(one.value_ticks for one in found) == best
    assert tight > 15 and offloaded > 5


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
            assert checked(problem, one.evidence) == one.value_ticks, seed
            owner = one.evidence.owner
            assert (owner is None) == ("left to the end of all," in one.text)
            assert owner is None or f"after device {owner} began" in one.text
            seen, of_owner = seen + 1, of_owner + (owner is not None)
    assert seen > 200 and of_owner > 50
