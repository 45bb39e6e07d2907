"""Evidence that this version cannot read: every command reads the file, and the check calls it not verified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands.main import main
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.files.exact_numbers import read_json, write_json
from pipesched.files.plan_answer import answer_text, plan_answer_from, plan_text
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.schedule_file import ScheduleFile, read_schedule, save
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import MoreMemory, OfRelaxed, OnDevice, UnknownForm
from pipesched.results.evidence_document import evidence_document, evidence_from
from pipesched.simulation.simulator import simulate
from solver.planning.plan import plan
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.makers import problem, schedule

OTHER: dict[str, Any] = {
    "form": "branching tree",
    "stages": [0, 1],
    "width": 7,
    "share": 0.25,
    "options": {"a": None},
}


def changed(path: Path, evidence: object) -> Path:
    """A schedule file whose bound is its value, with this evidence."""
    one = problem(1, 2, times={"forward": 1, "backward": 2}, memory={"capacity": 1})
    timeline = simulate(one, schedule("F0.0 BW0.0 F0.1 BW0.1"))
    save(ScheduleFile(timeline, 6, Certificate("load", 6, "It works.", 0, OnDevice(0))), path)
    document = json.loads(path.read_text())
    document["certificate"]["evidence"] = evidence
    path.write_text(json.dumps(document))
    return path


def within(evidence: dict[str, Any]) -> dict[str, Any]:
    return {"form": "more memory", "capacities": ["1"], "kind": "load", "evidence": evidence}


UNKNOWN = "of a form unknown to this version: branching tree"
WRONG = {
    "unknown form": (OTHER, UNKNOWN),
    "unknown form with more memory": (within(OTHER), UNKNOWN),
    "wrong value": ({"form": "device", "device": "zero"}, "that cannot be read: device: found zero"),
    "missing value": ({"form": "device"}, "that cannot be read: device: found None"),
    "wrong capacities": (within(OTHER) | {"capacities": 1}, "that cannot be read: capacities: found 1"),
    "form is no name": ({"form": 3}, "that cannot be read: form: found 3"),
    "no form": ([1], "that cannot be read: form: found None"),
}


@pytest.mark.parametrize(("evidence", "why"), daily([*WRONG.values()], 2), ids=daily([*WRONG], 2))
def test_every_command_reads_the_file(evidence: Any, why: str, tmp_path: Path, capsys: Any) -> None:
    path = str(changed(tmp_path / "schedule.json", evidence))
    for words in (
        ["check", path],
        ["check", path, "--again"],
        ["validate", path],
        ["export", path, "--format", "torch-csv", "-o", str(tmp_path / "out")],
        ["plot", path, "-o", str(tmp_path / "gantt.svg")],
    ):
        assert main(words) == 0, words
        said = capsys.readouterr()
        if words[0] == "check":
            assert f"not verified: the certificate (load) has evidence {why}" in said.out
            assert "optimal" not in said.out


def test_it_is_written_as_it_was_read(tmp_path: Path) -> None:
    for evidence, _ in WRONG.values():
        assert json.loads(write_json(evidence_document(evidence_from(evidence)))) == evidence
    file = read_schedule(changed(tmp_path / "schedule.json", OTHER))
    assert read_schedule(save(file, tmp_path / "again.json")) == file


def test_no_argument_takes_it_for_its_own() -> None:
    one = problem(1, 2, times={"forward": 1, "backward": 2})
    kinds = ("load", "decision diagram", "memory and copies", "waiting weight tasks", "exhaustive search by CP-SAT")
    unknown = UnknownForm("refutation ", '{"form": "refutation "}')
    for kind in kinds:
        for evidence in (unknown, OfRelaxed(MoreMemory((None,)), kind, unknown)):
            for objective in ("makespan", "period"):
                own = problem(1, 2, times={"forward": 1, "backward": 2}, objective=objective)
                claim = Certificate(kind, 1, "", evidence=evidence)
                assert check_bound(own, claim).verdict is Verdict.NOT_VERIFIED
    assert check_bound(one, Certificate("load", 0, "", evidence=unknown)).verdict is Verdict.VERIFIED  # nothing claimed


def test_files_of_plans_are_read_too(tmp_path: Path, capsys: Any) -> None:
    """Of a plan whose bound does not follow from what each device needs."""
    layers = [{"name": "layer", "count": 3, "forward": 1, "backward": 1, "activation": 1}]
    model = {"devices": 3, "microbatches": 4, "layers": layers, "placement": "linear", "memory": {"capacity": 2}}
    found = plan_problem_from(model)
    document: Any = read_json(plan_text(plan(found, counted(2))), "")
    (said,) = document["choices"]
    certificate = {"kind": "load", "value": "999", "text": "", "device": None, "evidence": OTHER}
    solved = {"layers": [1, 1, 1], "recompute": [[], [], []], "lower_bound": "999", "certificate": certificate}
    path = tmp_path / "plan.json"
    damaged: list[Any] = [{"form": "all partitions", "solved": [{"layers": 3}]}, {"form": "all partitions"}, {}, 3]
    for evidence in (OTHER, {"form": "all partitions", "solved": [solved]}, *damaged):
        document["choices"] = [said | {"evidence": evidence}]
        text = answer_text(plan_answer_from(document, "plan.json"))
        assert json.loads(text)["choices"] == json.loads(write_json(document))["choices"]
        path.write_text(text)
        assert main(["check", str(path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["bound"] == "not verified"


EARLIER: dict[str, dict[str, Any]] = {
    "linear relaxation": {
        "form": "multipliers of rows", "tick": "1", "memory_unit": "1", "denominator": 2,
        "rows": ["follows B0.0 F0.0", "idle grows B0.1 F0.1", "ends B0.1"], "multipliers": [2, 1, 2],
    },
    "Lagrangian": {
        "form": "multipliers", "device": 0, "owner": None, "tick": "1", "until": 5, "memory_unit": "1", "instants": [3],
        "running": [1], "holding": [0],
    },
}  # fmt: skip


@pytest.mark.parametrize(("kind", "evidence"), EARLIER.items())
def test_bounds_that_earlier_versions_had_are_not_verified(
    kind: str, evidence: dict[str, Any], tmp_path: Path, capsys: Any
) -> None:
    """Their files are read and drawn as ever."""
    path = changed(tmp_path / "schedule.json", evidence)
    document = json.loads(path.read_text())
    document["certificate"]["kind"] = kind
    path.write_text(json.dumps(document))
    assert main(["check", str(path)]) == 0
    assert f"not verified: the certificate ({kind}) has" in capsys.readouterr().out
    assert main(["plot", str(path), "-o", str(tmp_path / "gantt.svg")]) == 0
