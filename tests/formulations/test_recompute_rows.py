"""The rules of recomputation, stated twice: CP-SAT finds the partitions that a rule allows, and all of them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from ortools.sat.python import cp_model

from formulations.partition.partition_model import PartitionModel
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule, why_not_told
from tests.support.plan_brute_force import partitions
from tests.support.varied_plans import varied_plan


class _Solutions(cp_model.CpSolverSolutionCallback):
    def __init__(self, model: PartitionModel) -> None:
        super().__init__()
        self._model, self.found = model, set[Partition]()

    def on_solution_callback(self) -> None:
        self.found.add(self._model.partition(self.value))


def _solutions(plan: PlanProblem, stages: int) -> set[Partition]:
    model, solver = PartitionModel(plan, stages), cp_model.CpSolver()
    solver.parameters.enumerate_all_solutions = True
    seen = _Solutions(model)
    solver.solve(model.cp, seen)
    return seen.found


def _same(one: Partition) -> tuple[object, ...]:
    return one.counts, tuple(tuple(sorted(row)) for row in one.recompute)


@pytest.mark.parametrize("rule", [rule for rule in RecomputeRule if rule is not RecomputeRule.ANY])
@pytest.mark.parametrize("seed", [0, 2, 4, 8, 9])
def test_rows_and_rule_allow_the_same_partitions(seed: int, rule: RecomputeRule) -> None:
    whole = replace(varied_plan(Random(seed)), recompute_rule=RecomputeRule.ANY)
    # Layers of one name apart from each other: the first of them are recomputed first.
    layers = whole.model.layers if seed % 3 else (*whole.model.layers[:1], *whole.model.layers)
    plan = replace(whole, model=replace(whole.model, layers=layers), choices=whole.choices[:1], recompute_rule=rule)
    (choice,) = plan.choices
    stages = len(choice.on(plan.cluster.devices).chains[0])
    if stages > plan.model.most_stages:
        return
    every = list(partitions(replace(plan, recompute_rule=RecomputeRule.ANY), choice))
    allowed = {_same(one) for one in every if why_not_told(plan.model, one, rule) is None}
    assert {_same(one) for one in _solutions(plan, stages)} == allowed
