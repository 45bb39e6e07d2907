"""The rules of recomputation, stated twice: CP-SAT finds the partitions that a rule allows, and all of them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from ortools.sat.python import cp_model

from formulations.partition.partition_model import PartitionModel
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule, selections, why_not_expressible
from tests.support.plan_brute_force import partitions
from tests.support.varied_plans import varied_plan


class _Solutions(cp_model.CpSolverSolutionCallback):
    def __init__(self, model: PartitionModel) -> None:
        super().__init__()
        self._model, self.found = model, set[Partition]()

    def on_solution_callback(self) -> None:
        self.found.add(self._model.partition(self.value))


def _solutions(plan: PlanProblem) -> set[Partition]:
    model, solver = PartitionModel(plan, plan.choices[0]), cp_model.CpSolver()
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
    allowed = {_same(one) for one in every if why_not_expressible(plan.model, one, rule) is None}
    assert {_same(one) for one in _solutions(plan)} == allowed


def _ways(*names: str) -> list[dict[str, object]]:
    return [{"name": name, "time": 1, "keeps": 0.5} for name in names]


def _modules_plan(dense: list[str], moe: list[str], mtp: list[str]) -> PlanProblem:
    layers = [
        {"name": "dense", "forward": 1, "backward": 2, "activation": 2, "recompute": _ways(*dense)},
        {"name": "moe", "count": 2, "forward": 1, "backward": 2, "activation": 2, "recompute": _ways(*moe)},
        {"name": "mtp", "forward": 1, "backward": 2, "activation": 2, "recompute": _ways(*mtp)},
    ]
    return plan_problem_from({"devices": 2, "microbatches": 2, "layers": layers, "placement": "linear"})


# Ways of dense, moe and mtp, and what the lists of modules can say of them.
SAID = [
    # The dense layer has no such activation: nothing is recomputed there.
    (([], ["moe_act"], ["moe_act"]), [{"moe": "moe_act", "mtp": "moe_act"}]),
    # Its attention would be recomputed too, and the file does not say what that costs.
    (([], ["core_attn"], ["core_attn"]), []),
    (([], ["moe_act"], []), []),
    (
        (["selective"], ["moe_act", "core_attn+moe_act"], ["moe_act", "attention+moe_act"]),
        [
            {"moe": "moe_act", "mtp": "moe_act"},
            {"dense": "selective", "moe": "core_attn+moe_act", "mtp": "attention+moe_act"},
        ],
    ),
    (
        (["mlp"], ["moe"], ["moe"]),
        [{"dense": "mlp"}, {"moe": "moe", "mtp": "moe"}, {"dense": "mlp", "moe": "moe", "mtp": "moe"}],
    ),
    ((["offload"], ["full", "moe_act+full"], []), []),
]


@pytest.mark.parametrize(("ways", "said"), SAID)
def test_a_list_of_modules_recomputes_what_each_layer_has_of_them(
    ways: tuple[list[str], list[str], list[str]], said: list[dict[str, str]]
) -> None:
    plan = replace(_modules_plan(*ways), recompute_rule=RecomputeRule.SAME)
    found = selections(plan.model.kinds)
    assert sorted(map(str, map(dict, found))) == sorted(map(str, said))
    (choice,) = plan.choices
    every = list(partitions(replace(plan, recompute_rule=RecomputeRule.ANY), choice))
    allowed = {_same(one) for one in every if why_not_expressible(plan.model, one, RecomputeRule.SAME) is None}
    assert {_same(one) for one in _solutions(plan)} == allowed
    told = {frozenset((one.layer, one.mode) for row in row_of for one in row) for _, row_of in allowed}
    assert {frozenset(one.items()) for one in said} <= told
