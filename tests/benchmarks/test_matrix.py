"""The matrix of features: drawn sets of them hold what is claimed, every key has a switch, and refusals are the table's.

The cases are drawn anew every day; a failure prints the seed. PIPESCHED_MATRIX_SEED draws those of another day again.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.matrix import __main__ as matrix
from benchmarks.matrix import plan_switches, problem_switches, work
from benchmarks.matrix.draw import problem_case, text_of
from benchmarks.matrix.exact.model import optimum
from benchmarks.matrix.mutations import mutated
from benchmarks.matrix.outcome import Outcome
from benchmarks.matrix.plan_run import plan_document
from benchmarks.matrix.run import KINDS, run_drawn
from benchmarks.matrix.states import replanned
from benchmarks.matrix.store import Lines
from benchmarks.matrix.switch import together
from benchmarks.matrix.work import works
from pipesched.errors import BadInput
from pipesched.files.features.catalogue import excluded_pairs
from pipesched.files.plans.schema import json_schema as plan_schema
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.schema import json_schema as problem_schema
from solver.solve import solve
from tests.support import task_brute_force
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.in_turn import in_turn

SEED = int(os.environ.get("PIPESCHED_MATRIX_SEED") or datetime.now(UTC).strftime("%Y%m%d"))
# Cases of a run, by kind, size of the set, and whether every command runs.
DRAWN = (("problem", 2, True, 1), ("problem", 3, False, 2), ("plan", 2, False, 1))
# What the reader refuses of drawn cases besides the table: the value of one key does not fit that of another.
BESIDES = ("allowed: a list of", "placement:", "parameters.gather.most", "parameters.holders",
           "at most the activation", "at most the f", "what divides", "modules.vision.objective")  # fmt: skip


@pytest.mark.filterwarnings("ignore:an optimum is not stored")
@pytest.mark.parametrize(("kind", "size", "thorough", "count"), DRAWN)
def test_drawn_sets_of_features(
    kind: str, size: int, thorough: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A process of the page loads the program that started it; here that would be all of pytest.
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    random = Random(f"{SEED} {kind} {size}")
    every = list(together(KINDS[kind], size))
    for names in random.sample(every, count):
        found = run_drawn(kind, names, SEED, thorough)
        said = f"PIPESCHED_MATRIX_SEED={SEED}: {' + '.join(names)}\n" + "\n".join(found.faults) + found.document
        assert not found.faults, said


def _keys(schema: Mapping[str, Any], own: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The paths of all keys that hold a value of their own."""
    for key, value in own.get("properties", {}).items():
        here = f"{path}.{key}".lstrip(".")
        inner = [*_references(value)]
        if not inner:
            yield here
        for name in inner:
            yield from _keys(schema, schema["$defs"][name], here)


def _references(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        if "$ref" in value:
            yield str(value["$ref"]).rpartition("/")[2]
        for key, one in value.items():
            if key != "properties":
                yield from _references(one)
    elif isinstance(value, list):
        for one in value:
            yield from _references(one)


# Keys of every case, and those of which a switch writes some at a time.
_OF_ALL = ("devices", "microbatches", "times.forward", "times.backward", "layers.name", "layers.forward",
           "layers.backward", "layers.memory", "layers.activation")  # fmt: skip
# `sweep` has commands of its own; the shape of a model is held by the tests of derived layers.
_ELSEWHERE = ("sweep", "model", "hardware", "encoder", "modules", "cluster", "stage_overhead")


@pytest.mark.parametrize(
    ("schema", "switches"),
    [(problem_schema(), problem_switches.SWITCHES), (plan_schema(), plan_switches.SWITCHES)],
    ids=["problem", "plan"],
)
def test_every_key_belongs_to_a_switch(schema: Mapping[str, Any], switches: Any) -> None:
    known = [key for one in switches for key in one.keys]
    for key in _keys(schema, schema):
        top = key.split(".")[0]
        covered = any(key == one or key.startswith(f"{one}.") or one.startswith(f"{key}.") for one in known)
        of_task = key.startswith("tasks.")
        if top in _ELSEWHERE:
            assert top == "sweep" or any(one.split(".")[0] == top for one in known), key
        else:
            assert covered or of_task or key in _OF_ALL, f"no switch writes {key}"


def test_pairs_are_refused_as_the_table_says() -> None:
    """Of every pair of switches: refused if a row of the table is, and else for nothing but its own values."""
    second = [row._replace(one=row.one._replace(key="then")) for row in excluded_pairs() if row.one.key == "objective"]
    lines = {row.line for row in (*excluded_pairs(), *second)}
    for names in daily([*together(problem_switches.SWITCHES, 2)], 2):
        case = problem_case(names, SEED)
        document = json.loads(text_of(case.document), parse_float=Decimal)
        expected = {row.line for row in excluded_pairs() if row.one.is_in(document) and row.other.is_in(document)}
        by_second = document | {"objective": document.get("then")}
        expected |= {row.line for row in second if row.one.is_in(by_second) and row.other.is_in(by_second)}
        try:
            problem_from(document)
        except BadInput as error:
            found = {line.removeprefix("problem: ") for line in error.mistakes}
            assert expected <= found, (names, expected - found)
            others = [line for line in found - lines if not any(known in line for known in BESIDES)]
            assert expected or not others, (names, others)
        else:
            assert not expected, (names, expected)


@pytest.mark.filterwarnings("ignore:an optimum is not stored")  # each new switch draws other pairs
@in_turn("seed", range(25))
def test_the_exact_model_is_that_of_every_order(seed: int) -> None:
    """Two models of the same documents, of which neither knows the other."""
    random = Random(seed)
    names = random.choice([*together(problem_switches.SWITCHES, 2)])
    case = problem_case(names, seed)
    try:
        problem = problem_from(json.loads(text_of(case.document), parse_float=Decimal))
    except BadInput:
        return
    if problem.objective.repeats or problem.overlaps or any("rounded" in note for note in problem.notes):
        return
    try:
        best = task_brute_force.optimum(problem, problem.objective, 4, 200)
    except task_brute_force.TooManyOrdersError:
        return
    exact = optimum(case.plain)
    if best is None:
        assert exact.least is None
    else:
        assert exact.least is not None
        assert exact.most is not None
        assert exact.least <= best * problem.tick <= exact.most


def test_a_wrong_exact_value_would_be_found() -> None:
    """The claims fail where they should: an optimum below the bound, and a file that is not changed."""
    case = problem_case(("weight", "capacity"), 3)
    other = case._replace(plain=case.plain | {"microbatches": case.plain["microbatches"] + 1})
    from benchmarks.matrix.case_run import run_case

    assert not run_case(case, False).faults
    assert any("below the optimum" in fault for fault in run_case(other, False).faults)


def test_an_exact_value_of_many_digits_is_exact() -> None:
    """Two and a half times a number of 17 digits, in units of which a float does not count every one."""
    time = Fraction("3.0880449950108955")
    document = {"devices": 2, "microbatches": 2, "microbatch_scale": [2, Fraction(1, 2)]}
    assert optimum(document | {"times": {"forward": 0, "backward": [0, time]}}).least == time * Fraction(5, 2)


def test_states_of_spans_in_fractions_of_a_tick_are_judged_in_the_answers_ticks() -> None:
    """A step on every device with the next iteration overlapped: its span may be a half of a tick."""
    document = {
        "devices": 2, "microbatches": 2, "times": {"forward": 3, "backward": [4, 2]}, "memory": {"capacity": [6, 6]},
        "objective": "iteration", "parameters": {"step": {"time": 1}}, "overlap_next": True,
    }  # fmt: skip
    problem = problem_from(document)
    solution = solve(problem, counted(0.05))
    assert list(replanned(problem, solution, Random(2))) == []


def test_mutations_change_the_file() -> None:
    text = json.dumps({"starts": {"F0.0": 0, "BW0.0": 2}, "value": 5, "lower_bound": 5, "certificate": {"value": 5}})
    assert len({other for _, _, other in mutated(text, Random(1))} | {text}) == 7


def test_documents_of_plans_are_the_same_for_a_seed() -> None:
    assert plan_document(("recompute", "cluster"), 4) == plan_document(("recompute", "cluster"), 4)


def test_a_run_keeps_outcomes_and_goes_on_where_one_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second run has nothing left to do and prints the same page; a longer one runs what the store lacks."""
    ran = list[tuple[object, ...]]()

    def one(*case: Any) -> Outcome:
        ran.append(case[:3])
        return Outcome(*case[:3], faults=["wrong"] if len(ran) == 3 else [])

    monkeypatch.setattr(work, "run_drawn", one)
    monkeypatch.setattr(work, "_run_part", work.run_here)
    options = ["--seed", "7", "--store", str(tmp_path)]
    printed = list[str]()
    for more, code, count in ((("2",), 0, 2), (("2", "--resume"), 0, 2), (("3", "--resume"), 1, 3), (("3",), 0, 6)):
        assert matrix.main(["--triples", *more, *options]) == code
        printed.append(capsys.readouterr().out)
        assert ran[-3:] == [case[:3] for case in works(False, 3, 7)][: len(ran)][-3:] and len(ran) == count
    assert printed[0] == printed[1] != printed[2]
    kept = [one for path in tmp_path.glob("*.jsonl") for one in Lines(path)]
    assert [(one["kind"], tuple(one["names"]), one["seed"]) for one in kept] == ran[3:]


def test_a_case_that_ends_its_process_is_a_fault_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "run_here", _ends_at_the_second)
    work.run_all(list(works(False, 3, 7)), tmp_path, 1)
    kept = [one for path in tmp_path.glob("*.jsonl") for one in Lines(path)]
    assert sorted(len(one["faults"]) for one in kept) == [0, 0, 1]
    assert [fault for one in kept for fault in one["faults"]] == ["ends its process with code 3"]


def _ends_at_the_second(part: Sequence[work.Work], folder: Path) -> None:
    for one in part:
        if one[:3] == list(works(False, 3, 7))[1][:3]:
            os._exit(3)
        Lines(folder / f"{os.getpid()}.jsonl").keep(Outcome(*one[:3]))


def test_reductions_of_the_exact_model_wait_for_no_frozen_stage() -> None:
    """Stage 2, frozen, computes with the parameters of stage 1, whose reduction and norm its forwards do not delay."""
    document = {
        "devices": 2,
        "microbatches": 3,
        "placement": [0, 1, 1],
        "chains": [{"stages": [0, 1], "microbatches": 1}, {"stages": [2], "microbatches": 2}],
        "times": {"forward": [3, 4, 4], "backward": [2, 5, 1]},
        "frozen": 1,
        "objective": "iteration",
        "parameters": {"reduce": {"time": 1}, "holders": [0, 1, 1], "step": {"time": 1}},
    }
    for norm, least in (({}, 18), ({"norm": {"time": 3, "on": "compute"}}, 21)):
        own = document | {"parameters": document["parameters"] | norm}
        assert optimum(own).least == solve(problem_from(own), counted(2)).value_ticks == least
