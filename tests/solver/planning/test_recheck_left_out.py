"""`check --again` of plans: what was left out of a search is left out again only where its bound stands by itself."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from commands.main import main
from pipesched.checking.finding import Verdict
from pipesched.checking.plan_check import check_plan_bound, weakest
from pipesched.files.exact_numbers import read_json
from pipesched.files.plan_answer import PlanAnswer, answer_text, plan_answer_from, plan_text
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import PlanProblem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OnDevice, Refutation
from pipesched.results.plan_evidence import AllOrders, AllPartitions, OrderPaths, SolvedPartition
from solver.planning.plan import plan
from solver.planning.recheck_search import recheck_search
from tests.support.counted import counted

WORK = counted(4)


def four_layers(**keys: Any) -> PlanProblem:
    """The best plan takes 30: two layers on each device, one micro-batch at a time on each."""
    layers = [{"name": "layer", "count": 4, "forward": 1, "backward": 2, "activation": 1}]
    return plan_problem_from(
        {"devices": 2, "microbatches": 4, "layers": layers, "placement": "linear"} | {"memory": {"capacity": 4}} | keys
    )


def every_partition(claim: Fraction, certificate: Certificate | None) -> AllPartitions:
    return AllPartitions(tuple(SolvedPartition(Partition((n, 4 - n)), claim, certificate) for n in range(1, 4)))


def again(one: PlanProblem, bound: Fraction | int, evidence: Any) -> bool | None:
    return recheck_search(one, one.choices[0], Fraction(bound), evidence, WORK, Event())


def written(answer: PlanAnswer, path: Path) -> str:
    path.write_text(answer_text(answer))
    return str(path)


def test_partitions_without_a_sound_certificate_do_not_confirm_a_false_bound(tmp_path: Path, capsys: Any) -> None:
    one = four_layers()
    found = plan(one, WORK)
    assert found.best is not None
    best, above = found.best.value, found.best.value + 6
    assert (best, above) == (30, 36)
    weak = Certificate("load", 1, "", 0, OnDevice(0))
    for certificate in (None, Certificate("exhaustive search by CP-SAT", int(above), "", None, Refutation(None)), weak):
        evidence = every_partition(above, certificate)
        assert again(one, above, evidence) is False
    assert again(one, best, every_partition(best, None)) is True
    # And from the file, whose plan is made worse so that it does not refute the bound by itself.
    answer = plan_answer_from(read_json(plan_text(found), ""), "plan.json")
    (said,) = answer.choices
    lie = replace(said, lower_bound=above, evidence=every_partition(above, None))
    worse = plan(four_layers(partition=[1, 3]), WORK).best
    assert worse is not None and worse.value > best
    slow = replace(answer, choices=(lie,), lower_bound=above, partition=worse.partition)
    path = written(replace(slow, schedule=replace(answer.schedule, timeline=worse.timeline)), tmp_path / "plan.json")
    main(["check", path])
    assert "not verified" in capsys.readouterr().out
    assert main(["check", path, "--again", "--time-limit", "20", "--workers", "1"]) == 1
    assert "does not refute what is below" in capsys.readouterr().out


def test_published_orders_of_which_nothing_is_said_are_searched_by_their_own_paths() -> None:
    one = four_layers(schedule=["1f1b", "gpipe"], memory={"capacity": 16})
    found = plan(one, WORK)
    assert found.best is not None
    best = found.best.value
    for nothing in (AllOrders(()), AllOrders((OrderPaths("1f1b", ()), OrderPaths("gpipe", ())))):
        assert again(one, best, nothing) is True
        assert again(one, best + 1, nothing) is False
    assert again(one, best + 1, every_partition(best + 1, None)) is False
    assert again(one, best, every_partition(best, None)) is True


def test_a_placement_on_which_no_schedule_applies_is_not_refused() -> None:
    one = four_layers(schedule=["1f1b"], placement=["linear", "v-shape"], memory={"capacity": 64})
    found = plan(one, WORK)
    answer = plan_answer_from(read_json(plan_text(found), ""), "plan.json")
    verdicts = check_plan_bound(answer.problem, answer.lower_bound, answer.choices)
    assert weakest(verdicts) is not Verdict.REFUSED
    (other,) = (said for said in answer.choices if said.choice.placement == "v-shape")
    assert other.evidence == AllOrders(())
    assert recheck_search(one, other.choice, answer.lower_bound, AllOrders(()), WORK, Event()) is True


@pytest.mark.parametrize("capacity", [3, 4, 6])
def test_the_bound_of_all_partitions_is_the_best_of_their_plans(capacity: int) -> None:
    one = four_layers(memory={"capacity": capacity})
    values = []
    for cuts in combinations(range(1, 4), 1):
        counts = [b - a for a, b in pairwise((0, *cuts, 4))]
        best = plan(four_layers(memory={"capacity": capacity}, partition=counts), WORK).best
        values += [best.value] if best else []
    if values:
        assert again(one, min(values), every_partition(Fraction(99), None)) is not False
        assert again(one, min(values) + 1, every_partition(Fraction(99), None)) is not True
