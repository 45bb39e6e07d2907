"""The examples of the page for contributors: what a new rule, bound, heuristic or exporter is held to, they keep."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from formulations.constraints.catalogue import CONSTRAINTS
from heuristics.catalogue import HEURISTICS
from pipesched.files import plan_file
from pipesched.files.plans.features.catalogue import PLAN_FEATURES, with_features
from pipesched.files.plans.schema import PlanKeys
from pipesched.files.problem_file import read_problem
from pipesched.files.problems.document import problem_document
from pipesched.problem.objective import OBJECTIVES
from pipesched.problem.problem import Objective
from pipesched.registry import Registry
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from runtime.exporters.catalogue import EXPORTERS
from solver.bounds.analytic.catalogue import BOUNDS
from tests.formulations.test_constraints import feasible, granted, random_timeline, small_problem
from tests.support.exhaustive.optimum import optimum
from tests.support.makers import problem
from tests.support.piece_problems import compared
from tests.support.task_brute_force import TooManyOrdersError, tiny_reductions
from tests.support.tiny_problem import tiny_problem

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "adding.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: (.*?) -->\n```python\n(.*?)```", PAGE, re.DOTALL))
Adds = Callable[[Registry, str], object]


@pytest.fixture
def adds(monkeypatch: pytest.MonkeyPatch) -> Adds:
    """Runs an example and gives what it registers, which is gone after the test; also where a file has it already."""

    def run(registry: Registry, example: str) -> object:
        (name,) = re.findall(r'register\((?:\n? *)\w+\(\s*(?:name=)?"(.*?)"', EXAMPLES[example])
        registry.names()  # loads all of them
        monkeypatch.setattr(registry, "_items", {key: item for key, item in registry._items.items() if key != name})
        exec(compile(EXAMPLES[example], example, "exec", dont_inherit=True), {})
        return registry[name]

    return run


def test_the_heuristic_is_valid_and_has_its_closed_form(adds: Adds) -> None:
    heuristic = adds(HEURISTICS, "heuristic")
    one = problem(4, 8, times={"forward": 2, "backward": 3})
    schedule = heuristic.order(one)
    timeline = simulate(one, schedule)
    assert schedule.name == heuristic.name
    assert validate(timeline) == []
    assert heuristic.closed_form(one).peak == measure(timeline).peak_quanta


@pytest.mark.parametrize("literals", [True, False], ids=["order literals", "intervals"])
def test_the_rule_is_the_same_as_check_and_as_rows(literals: bool, adds: Adds) -> None:
    rule = adds(CONSTRAINTS, "rule")
    seen = {True: 0, False: 0}
    for seed in range(120):
        random = Random(seed)
        timeline = random_timeline(small_problem(random), random, in_microbatch_order=literals)
        said = rule.check(timeline)
        if seen[said] < 15 and all(other.check(timeline) for other in granted(rule, literals)):
            assert feasible([rule], timeline, literals) == said, seed
            seen[said] += 1
    assert min(seen.values()) > 5


def test_the_exact_model_keeps_the_rule(adds: Adds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    adds(CONSTRAINTS, "rule")
    exec(compile(EXAMPLES["solve with a rule of your own"], "solve", "exec"), {})
    assert (tmp_path / "with-a-pause.json").exists()


def test_the_bound_is_below_the_optimum(adds: Adds) -> None:
    bound = adds(BOUNDS, "bound")
    for seed in range(100):
        one = tiny_problem(Random(seed))
        best = optimum(one, Objective.MAKESPAN)
        if best is not None:
            assert all(
                certificate.value_ticks <= best.value for certificate in bound.certify(one, Objective.MAKESPAN)
            ), seed


def test_the_objective_is_solved(adds: Adds) -> None:
    """Of an iteration on each device by itself, against every order of problems that reduce and step."""
    objective, seen = adds(OBJECTIVES, "objective"), 0
    for number in range(12):
        one = tiny_reductions(Random(number))
        if one.objective is not Objective.SPAN:
            continue
        one = replace(one, objective=objective)
        try:
            assert compared(one) != ("nothing fits",)
        except TooManyOrdersError:
            continue
        seen += 1
    assert seen > 1


def test_the_objective_is_written_by_its_name(adds: Adds) -> None:
    """Only the iteration that overlaps the next one has a key in place of a name."""
    objective = adds(OBJECTIVES, "objective")
    one = read_problem(Path(__file__).parents[1] / "examples" / "reduce-and-step.yaml")
    written = problem_document(replace(one, objective=objective))
    assert written == problem_document(one) | {"objective": objective.name}
    overlapped = problem_document(replace(one, objective=Objective.SPAN))
    assert overlapped == problem_document(one) | {"overlap_next": True}


def test_the_plan_feature_is_read(adds: Adds, monkeypatch: pytest.MonkeyPatch) -> None:
    adds(PLAN_FEATURES, "plan feature")
    monkeypatch.setattr(plan_file, "PlanFile", with_features("PlanFile", "", PlanKeys))
    layers = [{"name": "layer", "count": 2, "forward": 1, "backward": 2}]
    plan = plan_file.plan_problem_from({"devices": 2, "microbatches": 2, "layers": layers, "data": "C4"})
    assert plan.notes == ("trained on C4",)


def test_the_exporter_writes_every_pass(adds: Adds) -> None:
    exporter = adds(EXPORTERS, "exporter")
    one = problem(4, 8, times={"forward": 2, "backward": 3})
    timeline = simulate(one, HEURISTICS["1f1b"].order(one))
    (text,) = exporter.export(timeline).values()
    assert len(text.splitlines()) == 1 + sum(1 for _ in timeline.schedule.passes())
