"""Partition and order searched together: costs, values and memory of a draft are those of the problem it makes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from random import Random

import pytest

from benchmarks.proofs.plan_attack import attack
from heuristics.catalogue import HEURISTICS
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import PlanProblem
from pipesched.results.plan import PlanCandidate
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import sequential
from solver.planning.joint.draft import KINDS, StageSums
from solver.planning.joint.given_order import GivenOrder
from solver.planning.joint.loads import Loads
from solver.planning.joint.orders import OrderArrays
from solver.planning.joint.search import JointSearch
from tests.support.exhaustive.optimum import optimum
from tests.support.in_turn import in_turn
from tests.support.plan_brute_force import partitions, tiny_plan

_LAYERS = [
    {"name": "first", "forward": 1, "backward": 2, "weight": 1},
    {"name": "layer", "count": 12, "forward": 2, "backward": 2, "weight": 2, "memory": 1, "activation": 2},
    {"name": "head", "forward": 5, "backward": 5, "weight": 1},
]


def _steps(number: int):
    """The progress of a round of so many steps."""
    at = iter(range(number + 1))
    return lambda: next(at) / number


@in_turn("whole_last", [False, True])
@in_turn("seed", range(15))
def test_costs_of_a_draft_are_those_of_its_problem(seed, whole_last):
    plan = tiny_plan(Random(seed))
    plan = replace(plan, whole_last=whole_last and plan.model.splittable)
    sums, (choice,) = StageSums(plan), plan.choices
    for partition in list(partitions(plan, choice))[:6]:
        draft, problem = sums.of_partition(partition), plan.problem(choice, partition)
        assert sums.partition(draft) == partition
        costs = sums.costs(draft)
        assert costs.static.tolist() == [stage.static for stage in problem.stages]
        for (kind, stage), change in problem.network.change.items():
            number = KINDS.index(kind)
            taken, given = costs.takes[number, stage], costs.gives[number, stage]
            assert (taken, -given) == (change.at_start, change.at_end), (kind, stage)
            assert costs.ticks[number, stage] == problem.network.tasks[kind, stage][0].ticks


@pytest.mark.parametrize("seed", range(15))
def test_a_given_order_takes_what_its_simulation_takes_and_no_less_than_its_loads(seed):
    plan = tiny_plan(Random(seed))
    sums, (choice,) = StageSums(plan), plan.choices
    some = list(partitions(plan, choice))[:6]
    if not some:
        return
    order = sequential(plan.problem(choice, some[0]))
    placement = choice.on(plan.cluster.devices)
    chain = placement.chains[0]
    where = placement.stage_device
    lags = [int(plan.cluster.lag(where[a], where[b]) / plan.tick) for a, b in pairwise(chain)]
    first = simulate(plan.problem(choice, some[0]), order)
    given, orders = GivenOrder(first, len(chain)), OrderArrays(first, len(chain), lags, free_order=False)
    loads = Loads(plan, placement, lags)
    for partition in some:
        problem, costs = plan.problem(choice, partition), sums.costs(sums.of_partition(partition))
        timeline = simulate(problem, order)
        value = PlanCandidate(choice, partition, timeline, "sequential").value / plan.tick
        assert given.value(costs) == value
        devices = range(problem.devices) if plan.cluster.capacity is not None else ()
        lacking = {broken.rule for broken in validate(timeline)}
        assert all(orders.fits(orders.order, device, costs) for device in devices) is (not lacking), lacking
        best = optimum(problem, plan.objective)
        assert best is None or loads.bound(costs) <= best.value


def _plan(**more) -> PlanProblem:
    document = {"devices": 3, "microbatches": 6, "layers": _LAYERS, "placement": "interleaved", "chunks": 2}
    return plan_problem_from(document | more)


def _start(plan: PlanProblem) -> PlanCandidate:
    (choice,) = plan.choices
    partition = next(iter(partitions(plan, choice)))
    problem = plan.problem(choice, partition)
    order = HEURISTICS["interleaved-1f1b"].order(problem)
    return PlanCandidate(choice, partition, simulate(problem, order), order.name)


def test_what_the_search_finds_is_valid_and_what_it_says_it_is():
    way = [{"name": "full", "time": 2, "keeps": Fraction(1, 2)}]
    layers = [_LAYERS[0], _LAYERS[1] | {"recompute": way}, _LAYERS[2]]
    plan = _plan(memory={"capacity": 30}, layers=layers)
    start = _start(plan)
    search = JointSearch(plan, plan.choices[0], start, free_order=True, seed=1)
    search.run(_steps(60))
    search.run(_steps(60))
    found = search.candidate()
    assert validate(found.timeline) == []
    assert found.value == search.value * plan.tick < start.value


def test_of_a_given_order_only_the_partition_changes():
    # On the first partition a full backward is never better, on others it is: the passes stay what they are.
    layers = [_LAYERS[0], {"name": "layer", "count": 12, "forward": 2, "backward": 2, "weight": 2, "fused": 3}]
    plan = _plan(layers=[*layers, _LAYERS[2]])
    start = _start(plan)
    search = JointSearch(plan, plan.choices[0], start, free_order=False, seed=1)
    search.run(_steps(60))
    found = search.candidate()
    assert found.timeline.schedule is start.timeline.schedule
    assert found.value == search.value * plan.tick < start.value


@pytest.mark.parametrize("free_order", [False, True])
def test_a_given_order_of_one_partition_takes_no_time(free_order):
    start = _start(_plan())
    plan, asked = replace(_plan(), counts=start.partition.counts), []
    search = JointSearch(plan, plan.choices[0], start, free_order=free_order, seed=1)
    search.run(lambda: asked.append(1) or len(asked) / 3)
    assert bool(asked) is free_order


def test_a_published_order_is_not_changed_before_it_bounds_others():
    # The bound of 1F1B was above a plan where annealing had split its backwards.
    assert attack(tiny_plan(Random(47))).wrong == ""
