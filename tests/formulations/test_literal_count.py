"""How many order literals a problem needs: as many as its exact model has; of very many jobs, all pairs."""

from __future__ import annotations

from random import Random

import pytest

from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables.literal_count import literal_count
from formulations.variables.model_variables import Model
from tests.support.makers import PLACEMENTS, problem


@pytest.mark.parametrize("name", PLACEMENTS)
def test_the_count_is_that_of_the_model(name: str) -> None:
    for seed in range(40):
        rng = Random(seed)
        times: dict[str, object] = {"forward": rng.randrange(4), "backward": 2}
        if rng.random() < 0.8:
            times["weight"] = 3
            times |= {"fused": rng.randrange(3, 7)} if rng.random() < 0.5 else {}
        taken = rng.randrange(1, 5)
        memory: dict[str, object] = {"activation": taken, "freed_by_backward": rng.randrange(-2, taken + 1)}
        if rng.random() < 0.8:
            memory["capacity"] = rng.randrange(taken, 6 * taken)
        one = problem(2, rng.randrange(1, 8), **PLACEMENTS[name](2), times=times, memory=memory)
        pairs = [frozenset(pair[:2]) for order in Model(jobs_of(one)).orders for pair in order.undecided()]
        assert literal_count(one) == len(set(pairs))
        assert literal_count(one) == literal_count(one, [0]) + literal_count(one, [1])


def test_of_very_many_jobs_every_pair_counts() -> None:
    one = problem(256, 512, memory={"capacity": 256, "freed_by_backward": 0.25})
    assert literal_count(one) == 256 * 1536 * 1535 // 2
