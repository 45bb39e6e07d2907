"""A plan's file: what it says is read back exactly, its bound is checked, and forged evidence is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from random import Random
from threading import Event

import pytest

from benchmarks.cases.plan_cases import deepseek, nemotron, slackpipe
from commands.main import main
from commands.reports.checks.plan_check import broken_plan
from pipesched.checking.finding import Verdict
from pipesched.checking.plan_check import check_plan_bound, weakest
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json, write_json
from pipesched.files.plan_answer import plan_answer_from, plan_text
from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.results.plan_evidence import AllOrders, AllPartitions
from solver.planning.plan import plan
from solver.planning.recheck_search import recheck_search
from tests.support.counted import counted
from tests.support.in_turn import in_turn
from tests.support.plan_brute_force import best_value, tiny_plan

_LIMITS = counted(3)
_UNIFORM = {"devices": 2, "microbatches": 4, "layers": [{"name": "layer", "count": 8, "forward": 1, "backward": 1}]}


_CLASSES = {
    "cluster": [{"devices": 1, "memory": 20}, {"devices": 1, "speed": 0.5, "memory": 10}],
    "decide": {"cluster": "free"},
    "placement": "linear",
}


def _read(found):
    return plan_answer_from(read_json(plan_text(found), "plan.json"), "plan.json")


def _checked(answer, **changed):
    problem, bound = answer.problem, changed.get("bound", answer.lower_bound)
    own = changed.get("choices", answer.choices), changed.get("variants", answer.variants)
    return weakest(check_plan_bound(problem, bound, *own))


@in_turn(
    "problem",
    [
        *(tiny_plan(Random(seed)) for seed in range(25)),
        plan_problem_from(deepseek("deepseek-v3 16/1/64") | {"schedule": "1f1b"}),
        plan_problem_from(nemotron()),
        replace(plan_problem_from(nemotron()), whole_last=True),
        plan_problem_from(slackpipe(True) | {"transfer": [[0, 1], [2, 0]], "partition": "even"}),
        plan_problem_from(_UNIFORM | _CLASSES | {"microbatches": 2}),
        plan_problem_from(_UNIFORM | {"transfer": {"time": Fraction(1, 3), "on": "comm"}, "partition": [5, 3]}),
        # Rounded to even multiples of a tick.
        plan_problem_from(
            _UNIFORM | {"transfer": [[0, Fraction("1.0214515779638824")], [Fraction("2.038156005935985"), 0]]}
        ),
    ],
)
def test_problem_is_read_back_as_it_was(problem):
    assert plan_from_document(read_json(write_json(plan_document(problem)), ""), "") == problem


@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_plans_hold_in_the_check_and_again(seed):
    problem = tiny_plan(Random(seed))
    found = plan(problem, _LIMITS)
    if found.best is None:
        return
    answer = _read(found)
    assert answer.lower_bound == found.lower_bound
    assert _checked(answer) in (Verdict.VERIFIED, Verdict.TRUSTED)
    (choice,), (said,) = problem.choices, answer.choices
    if isinstance(said.evidence, AllPartitions):
        assert recheck_search(problem, choice, answer.lower_bound, said.evidence, _LIMITS, Event()) is True
        best = best_value(problem)[choice]
        # Nothing is left out that would hide the optimum.
        assert recheck_search(problem, choice, best + problem.tick, said.evidence, _LIMITS, Event()) is not True


def test_published_orders_are_searched_again_by_their_paths():
    problem = plan_problem_from(_UNIFORM | {"schedule": ["1f1b", "gpipe"], "placement": "linear"})
    answer = _read(plan(problem, _LIMITS))
    (said,) = answer.choices
    assert isinstance(said.evidence, AllOrders)
    assert _checked(answer) is Verdict.VERIFIED
    assert recheck_search(problem, said.choice, answer.lower_bound, said.evidence, _LIMITS, Event()) is True
    above = answer.lower_bound + 1
    assert recheck_search(problem, said.choice, above, said.evidence, _LIMITS, Event()) is False
    # A path less, and nothing refutes what is below.
    few = AllOrders(tuple(replace(paths, tried=paths.tried[:1]) for paths in said.evidence.orders[:1]))
    assert recheck_search(problem, said.choice, above, few, _LIMITS, Event()) is not True
    free = replace(problem, schedules=())
    assert weakest(check_plan_bound(free, answer.lower_bound, answer.choices)) is Verdict.REFUSED


def test_every_variant_has_evidence_of_its_own():
    """The file holds the problem as asked; a variant less, or one that says less, and the bound is refused."""
    problem = plan_problem_from(_UNIFORM | _CLASSES)
    answer = _read(plan(problem, _LIMITS))
    assert answer.problem == problem and len(answer.variants) == 2 and not broken_plan(answer)
    assert _checked(answer) in (Verdict.VERIFIED, Verdict.TRUSTED)
    one, other = answer.variants
    assert _checked(answer, variants=(one,)) is Verdict.REFUSED
    assert _checked(answer, variants=(one, one._replace(name=other.name, choices=()))) is Verdict.REFUSED
    assert _checked(answer, bound=max(one.lower_bound, other.lower_bound) + 1) is Verdict.REFUSED


def test_check_reads_what_plan_writes(tmp_path, capsys):
    (tmp_path / "p.json").write_text(json.dumps(_UNIFORM | {"placement": "linear"}), encoding="utf-8")
    assert main(["plan", str(tmp_path / "p.json"), "--time-limit", "2", "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["check", str(tmp_path / "plan.json"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["valid"]
    assert said["bound"] in ("verified", "trusted")
    document = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    first, last = document["plan"]["layers"]
    document["plan"]["layers"] = [first + 1, last - 1] if last > 1 else [first - 1, last + 1]
    (tmp_path / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    assert main(["check", str(tmp_path / "plan.json")]) == 1
    assert "the schedule is not one of the stages that this partition makes" in capsys.readouterr().out


@pytest.mark.parametrize("key", ["problem", "lower_bound", "choices", "plan"])
def test_damaged_files_are_bad_input(key):
    document = read_json(plan_text(plan(plan_problem_from(_UNIFORM), counted(1))), "")
    for wrong in (None, {"a": 1}, "x"):
        with pytest.raises(BadInput, match=rf"^plan\.json: {key}\b"):
            plan_answer_from(document | {key: wrong}, "plan.json")
