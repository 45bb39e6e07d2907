"""Bounds where activations may be offloaded or recomputed: what they prove, and what the check of them refuses."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.checking.memory.memory_and_copies import memory_and_copies as checked
from pipesched.files.problem_file import problem_from
from pipesched.problem.attainable_spans import largest_denominator, least_from
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import ResourceWeights
from solver.bounds.saving import memory_and_copies as bound
from solver.bounds.saving.certificates import certificates
from solver.bounds.saving.memory_and_copies import memory_and_copies
from tests.support.small_memory import small_memory


def pipeline(capacity: int, devices: int = 4, microbatches: int = 8, weight: int = 10, **memory: Any) -> Problem:
    times = {"forward": 10, "backward": 10, "weight": weight, "transfer": 1}
    document = {"devices": devices, "microbatches": microbatches, "times": times}
    return problem_from({**document, "memory": {"capacity": capacity, **memory}})


def strongest(problem: Problem) -> Certificate:
    found = certificates(problem, problem.objective)
    assert all(check_bound(problem, one).verdict is Verdict.VERIFIED for one in found)
    return found[0]


def copies(ticks: float) -> dict[str, Any]:
    return {"out": ticks, "in": ticks}


def test_copies_out_of_every_activation_take_turns() -> None:
    """On device 3 a forward comes before the first of eight copies out; behind the last there are a backward, the way of
    its gradient, and a weight pass on device 0.
    """
    one = pipeline(8, offload={"out": 60, "in": 0})
    found = strongest(one.with_stages(may_keep=[False] * 4))
    assert (found.device, found.value_ticks) == (3, 3 * (10 + 1) + 10 + 8 * 60 + 10 + 3 * (1 + 10) + 10)


def test_compute_and_memory_together_prove_more_than_either() -> None:
    """Recomputed activations take compute, kept ones memory: a mean of both leaves less than the better of the two."""
    one = pipeline(1, offload=copies(10), recompute=[{"name": "full", "time": 10, "keeps": 0}])
    found = strongest(one)
    assert isinstance(found.evidence, ResourceWeights)
    assert sum(weight > 0 for weight in found.evidence.weights) == 2
    assert found.value_ticks == 364


def test_the_check_proves_of_the_evidence_just_what_the_bound_claims() -> None:
    """A bound that takes too little of a resource into account proves nothing wrong, so the check accepts it.

    In the last case the memory over time of two stages with different activations decides.
    """
    seen = 0
    for seed in (*range(300), 1010):
        problem = small_memory(Random(seed))
        problem = replace(problem, microbatches=(1 + 2 * (seed % 2)) * problem.microbatches)
        if why_infeasible(problem) is not None:
            continue
        parts = largest_denominator(problem)
        for one in memory_and_copies(problem, problem.objective):
            assert isinstance(one.evidence, ResourceWeights)
            assert one.value_ticks == least_from(checked(problem, one.evidence), parts), seed
            seen += 1
    assert seen > 200


def test_without_multipliers_the_best_resource_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were GLOP not to solve the program: no weights but of one resource, and the check finds what they prove."""
    monkeypatch.setattr(bound, "_dual_values", lambda rows, ways: None)
    one = pipeline(1, offload=copies(40))
    found = max(memory_and_copies(one, one.objective), key=lambda certificate: certificate.value_ticks)
    assert isinstance(found.evidence, ResourceWeights)
    assert sorted(found.evidence.weights)[-2:] == [0, 1]
    assert found.value_ticks == 768
    assert check_bound(one, found).verdict is Verdict.VERIFIED
