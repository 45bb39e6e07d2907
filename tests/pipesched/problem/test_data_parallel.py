"""Pipelines side by side with lost and slow workers: the chains they become, in a file and back, and their optimum."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput, DoesNotApply
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.problem_file import problem_from
from pipesched.files.problem_text import problem_text
from pipesched.problem.passes import BW, B, F
from pipesched.problem.problem import Problem
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.sweeps.cells import content_key
from pipesched.validation.validator import validate
from solver.solve import solve
from tests.support.counted import counted
from tests.support.exhaustive.optimum import optimum
from tests.support.in_turn import in_turn
from tests.support.makers import problem

# The times of ReCycle's figure: F 20, B 30, W 10, a transfer of 1.
TIMES = {"forward": 20, "backward": 30, "weight": 10, "transfer": 1}


def pipelines(count: int, lost: Any = (), slow: Any = None, **keys: Any) -> Problem:
    section = {"count": count, "lost": [list(one) for one in lost], "slow": slow or {}}
    return problem(4, 12, **{"times": TIMES, "pipelines": section} | keys)


def test_the_micro_batches_of_a_lost_worker_go_in_turn_to_its_peers() -> None:
    one = pipelines(3, [(1, 1)], {"0.2": 1.5})
    where = one.placement
    assert (one.devices, one.microbatches, len(where.chains)) == (11, 36, 4)
    # Devices 0 to 3 are pipeline 0, then 4 to 6 the three workers left of pipeline 1.
    devices = [[where.stage_device[stage] for stage in chain] for chain in where.chains]
    assert devices == [[0, 1, 2, 3], [4, 1, 5, 6], [4, 8, 5, 6], [7, 8, 9, 10]]
    assert one.walks.shares == (12, 6, 6, 12)
    forward = [stage.forward * one.tick for stage in one.stages]
    assert forward == [20, 20, 30, 20] + [20] * 12


def test_a_device_holds_its_parameters_once_and_its_memory_is_its_own() -> None:
    one = pipelines(2, [(0, 1)], memory={"capacity": [5, 6, 7, 8], "static": [1, 2, 3, 4]})
    assert [pool.capacity * one.resolution for pool in one.pools] == [5, 7, 8, 5, 6, 7, 8]
    assert [held * one.resolution for held in one.static] == [1, 3, 4, 1, 2, 3, 4]
    links = pipelines(2, [(0, 1)], times=TIMES | {"transfer": [[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]]})
    chain = links.placement.chains[0]  # 0.0, then 1.1, then 0.2 and 0.3
    assert [links.lag(a, b) * links.tick for a, b in pairwise(chain)] == [1, 4, 6]


@pytest.mark.parametrize(
    ("lost", "slow", "value"),
    [((), None, 783), ([(1, 1)], None, 981), ([(0, 0), (1, 0), (1, 1), (2, 2), (3, 3)], {"0.2": 2}, 1962)],
)
def test_published_cases_are_proved(lost: Any, slow: Any, value: int) -> None:
    """Four pipelines of ReCycle's times: the busiest worker has no idle time but until its first activation arrives."""
    one = pipelines(4, lost, slow)
    found = solve(one, counted(20))
    assert found.status is Status.OPTIMAL and found.timeline is not None
    assert (found.value, validate(found.timeline)) == (value, [])


def test_the_file_says_the_chains_and_is_read_back() -> None:
    one = pipelines(2, [(1, 2)], memory={"capacity": 6})
    text = problem_text(one)
    assert "chains:" in text and "microbatches: 12" in text
    assert problem_from(read_yaml(text, "")) == one


def test_stages_with_their_own_parameters_are_read_back() -> None:
    """Holders that are each stage itself were written as none, and then differed."""
    parameters = {"reduce": {"time": 1}, "step": {"time": 1}}
    one = problem_from({"devices": 2, "microbatches": 2, "times": {"forward": 1, "backward": 2}, "pipelines": {"count": 2},
                        "parameters": parameters, "objective": "iteration"})  # fmt: skip
    again = problem_from(read_yaml(problem_text(one), "text"))
    assert again == one and content_key(again) == content_key(one)


def test_bidirectional_pipelines_side_by_side_have_two_chains_each() -> None:
    one = problem(2, 4, placement="bidirectional", pipelines={"count": 2, "lost": [[0, 0]]})
    assert Counter(one.walks.shares) == {2: 4} and one.devices == 3
    for chain in one.placement.chains:
        assert len(chain) == 2


def _tiny(random: Random) -> Problem:
    section: dict[str, Any] = {"count": 2}
    section["lost"] = [[random.randint(0, 1), random.randint(0, 1)]] if random.random() < 0.7 else []
    worker = [random.randint(0, 1), random.randint(0, 1)]
    if random.random() < 0.5 and worker not in section["lost"]:
        section["slow"] = {f"{worker[0]}.{worker[1]}": random.choice((2, Fraction(3, 2)))}
    times: dict[str, Any] = {"forward": random.randint(1, 3), "backward": random.randint(1, 4)}
    times["transfer"] = random.choice((0, 1))
    memory = {"capacity": random.randint(1, 3)} if random.random() < 0.6 else {}
    return problem(2, random.choice((1, 2)), times=times, pipelines=section, memory=memory)


@pytest.mark.parametrize("seed", range(12))
def test_solutions_are_those_of_brute_force(seed: int) -> None:
    one = _tiny(Random(seed))
    best = optimum(one, one.objective)
    found = solve(one, counted(5))
    assert found.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)
    assert found.value == (None if best is None else float(best.value * one.tick))


@pytest.mark.parametrize("splits", [True, False])
def test_recycle_s_order_is_valid_and_holds_no_more_than_it_says(splits: bool) -> None:
    times = TIMES if splits else {"forward": 20, "backward": 40, "transfer": 1}
    for lost in [(), [(1, 1)], [(0, 0), (1, 0), (2, 3)]]:
        one = pipelines(4, lost, times=times)
        timeline = simulate(one, HEURISTICS["recycle"].order(one))
        assert validate(timeline) == []
        walks = zip(one.placement.chains, strict=True)
        through = Counter(one.placement.stage_device[stage] for (chain,) in walks for stage in chain)
        places = {one.placement.stage_device[s]: n for chain in one.placement.chains for n, s in enumerate(chain)}
        for device, row in enumerate(timeline.schedule.orders):
            held = most = 0
            for (p,) in row:
                held += (p.kind is F) - (p.kind in (B, BW))
                most = max(most, held)
            assert most <= 4 - places[device] + through[device] - 1
    assert measure(timeline).makespan_ticks > 0


def test_recycle_is_for_pipelines_side_by_side() -> None:
    for keys in ({}, {"placement": "bidirectional"}):
        with pytest.raises(DoesNotApply, match="pipelines side by side"):
            one = problem(2, 2, **keys)
            HEURISTICS["recycle"].order(one)


CHAINS = [{"stages": [0, 1], "microbatches": 2}, {"stages": [2, 3], "microbatches": 1}]


@in_turn(
    ("keys", "mistake"),
    [
        ({"pipelines": {}}, "pipelines.count: missing"),
        ({"pipelines": {"count": 2, "lost": [[2, 0]]}}, "pipelines.lost: found worker 2.0; allowed: pipelines 0 to 1"),
        ({"pipelines": {"count": 2, "lost": [[0, 0], [1, 0]]}}, "found device 0 of every pipeline"),
        ({"pipelines": {"count": 2, "lost": [0]}}, "pipelines.lost: found [0]"),
        ({"pipelines": {"count": 2, "slow": {"0": 2}}}, "pipelines.slow"),
        ({"pipelines": {"count": 2, "lost": [[0, 0]], "slow": {"0.0": 2}}}, "which is lost"),
        ({"pipelines": {"count": 2}, "objective": "period"}, "objective: found period with pipelines"),
        ({"pipelines": {"count": 2}, "microbatch_scale": [1, 2, 1]}, "microbatch_scale: found with pipelines"),
        ({"pipelines": {"count": 10**7}}, "pipelines.count: found 10000000"),
        ({"chains": CHAINS}, "chains: found stage 2; allowed: 0 to 1"),
        ({"placement": "interleaved", "chunks": 10**9, "chains": CHAINS}, "no chain through stage 4"),
        ({"placement": [0, 1, 1, 0], "chains": CHAINS[:1]}, "no chain through stage 2"),
        ({"placement": [0, 1, 1, 0], "chains": [*CHAINS, *CHAINS[1:]]}, "found stage 2 in 2 places"),
        ({"placement": [0, 1, 1], "chains": CHAINS}, "chains: found stage 3; allowed: 0 to 2"),
        ({"placement": [0, 1, 1, 0], "chains": [CHAINS[0], {"stages": [2, 3]}]}, "chains[1].microbatches: missing"),
        ({"placement": [0, 1, 1, 0], "chains": [CHAINS[0], CHAINS[1] | {"microbatches": 4}]}, "found 6 micro-batches"),
        ({"placement": [0, 1, 1, 0], "chains": CHAINS, "pipelines": {"count": 2}}, "pipelines: found with chains"),
    ],
)
def test_mistakes(keys: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as caught:
        problem(2, 3, **keys)
    assert any(mistake in line for line in caught.value.mistakes)
