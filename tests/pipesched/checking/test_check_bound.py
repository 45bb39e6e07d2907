"""The check of bounds: what it refuses and why, what it leaves open, and that a solve drops what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from itertools import product
from math import floor
from pathlib import Path
from random import Random
from threading import Event

import pytest

from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.bound_problems import draw
from commands.main import main
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.files.schedule_file import ScheduleFile, read_schedule, save
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import (
    AroundDevice,
    Evidence,
    MemoryOfDevice,
    OnDevice,
    OnStage,
    OnStream,
    Refutation,
    StreamMemory,
    StreamTasks,
    StreamWeights,
)
from solver.backends.refuted_again import refuted_again
from solver.bounds.analytic.catalogue import certificates
from solver.engine.clock import Clock
from solver.engine.incumbent import Incumbent
from solver.limits import Limits
from solver.solve import solve
from tests.support.makers import problem
from tests.support.task_brute_force import optimum, tiny_tasks

WORK = Limits(deterministic=0.5, workers=1)


def plain(objective: str = "makespan", **keys: object) -> Problem:
    times = {"forward": 2, "backward": 2, "weight": 1, "transfer": 0.5}
    return problem(3, 4, times=times, objective=objective, **keys)


@pytest.mark.parametrize(
    ("kind", "evidence"),
    [
        ("load", OnDevice(7)),
        ("load", OnStage(0)),
        ("head and tail", AroundDevice(0, 1, False)),
        ("in-flight limit", OnStage(-1)),
        ("integral warm-up", OnDevice(2)),
    ],
)
def test_evidence_that_does_not_fit_the_argument_is_refused(kind: str, evidence: Evidence) -> None:
    assert check_bound(plain(), Certificate(kind, 10**6, "", None, evidence)).verdict is Verdict.REFUSED


def test_what_is_not_understood_is_not_verified() -> None:
    one, load = plain(), Certificate("load", 20, "", 0, OnDevice(0))
    assert check_bound(one, load).verdict is Verdict.VERIFIED
    assert check_bound(one, replace(load, evidence=None)).verdict is Verdict.NOT_VERIFIED
    assert check_bound(one, replace(load, kind="a new argument")).verdict is Verdict.NOT_VERIFIED
    period = replace(one, objective=Objective.PERIOD)
    assert check_bound(period, replace(load, kind="round trip")).verdict is Verdict.NOT_VERIFIED
    assert check_bound(replace(one, transfer_stream="comm"), load).verdict is Verdict.NOT_VERIFIED
    assert check_bound(one, replace(load, evidence=Refutation(None))).verdict is Verdict.TRUSTED


def test_the_load_of_a_stream_is_that_of_its_tasks() -> None:
    forward = [{"name": "attn", "time": 3}, {"name": "send", "on": "comm", "time": 2}]
    tasks = {"forward": forward, "backward": [*forward, {"name": "mlp", "time": 1}]}
    one = problem_from({"devices": 2, "microbatches": 3, "streams": ["compute", "comm"], "tasks": tasks})
    found = {(c.evidence, c.value_ticks) for c in certificates(one, one.objective) if c.kind == "load"}
    assert (OnStream(0, "compute"), 3 * (3 + 4)) in found and (OnStream(1, "comm"), 3 * 4) in found
    for evidence, value in found:
        claim = Certificate("load", value, "", None, evidence)
        assert check_bound(one, claim).verdict is Verdict.VERIFIED
        assert check_bound(one, replace(claim, value_ticks=value + 1)).verdict is Verdict.REFUSED
    assert check_bound(one, Certificate("load", 1, "", 0, OnStream(0, "none"))).verdict is Verdict.REFUSED
    assert check_bound(one, Certificate("load", 1, "", 0, OnDevice(0))).verdict is Verdict.NOT_VERIFIED


@pytest.mark.parametrize("seed", range(5))
def test_no_evidence_proves_more_of_a_stream_than_the_optimum(seed: int) -> None:
    random = Random(seed)
    one = replace(tiny_tasks(random), objective=random.choice((Objective.MAKESPAN, Objective.SPAN)))
    for genuine in certificates(one, one.objective):
        verdict = check_bound(one, genuine).verdict
        assert verdict is Verdict.VERIFIED or genuine.evidence is None or one.network.one_task_each
    best = optimum(one, one.objective)
    if best is None:
        return
    for device, stream, owner in product(range(one.devices), one.streams, (None, *range(one.devices))):
        head, tail = random.randint(0, floor(best)), random.randint(0, floor(best))
        for kind, evidence in (
            ("load", OnStream(device, stream)),
            ("stream heads and tails", StreamTasks(device, stream, owner, one.tick, head, tail)),
            ("stream memory", StreamMemory(device, stream, owner, one.tick, head, tail)),
            ("memory over time of tasks", MemoryOfDevice(device, owner)),
            ("waiting weight tasks", StreamWeights(device, stream, owner, one.tick, head, tail)),
        ):
            false = Certificate(kind, floor(best) + 1, "", None, evidence)
            assert check_bound(one, false).verdict is not Verdict.VERIFIED


def test_a_solve_drops_a_bound_whose_evidence_does_not_prove_it() -> None:
    one = plain()
    true, wrong = Certificate("load", 20, "", 0, OnDevice(0)), Certificate("round trip", 1000, "", 0, OnDevice(0))
    incumbent = Incumbent(one, [wrong, true], Clock(WORK), lambda _: None)
    incumbent.check_bound()
    assert incumbent.state.certificate == true
    assert any("did not stand the check" in note for note in incumbent.state.notes)


def test_files_carry_evidence_and_the_command_checks_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solution = solve(plain(), WORK)
    path = save(solution, tmp_path / "schedule.json")
    file = read_schedule(path)
    assert file.certificate == solution.certificate is not None and file.certificate.evidence is not None

    def checked(*options: str) -> tuple[int, dict[str, object]]:
        code = main(["check", str(path), "--json", *options])
        return code, json.loads(capsys.readouterr().out)

    code, found = checked()
    assert (code, found["valid"], found["bound"], found["optimal"]) == (0, True, "verified", True)
    document = json.loads(path.read_text())
    document["certificate"]["evidence"]["device"] = 17
    path.write_text(json.dumps(document))
    assert checked()[0] == 1
    document["certificate"]["evidence"]["device"] = "first"
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput, match=r"certificate\.evidence\.device"):
        read_schedule(path)
    del document["certificate"]["evidence"]  # as older versions wrote it
    path.write_text(json.dumps(document))
    assert checked()[0] == 0 and read_schedule(path).certificate is not None


def test_refutations_by_cp_sat_are_trusted_and_repeated(tmp_path: Path) -> None:
    one = problem(2, 2, times={"forward": 2, "backward": 2, "weight": 1})
    solution = solve(one, WORK)
    assert solution.timeline is not None and solution.lower_bound_ticks == solution.value_ticks
    best, searched = solution.lower_bound_ticks, Refutation(None)
    assert refuted_again(one, best, searched, WORK, Event()) is True
    claim = Certificate("exhaustive search by CP-SAT", best, "", None, searched)
    path = save(ScheduleFile(solution.timeline, best, claim), tmp_path / "schedule.json")
    assert main(["check", str(path), "--again", "--workers", "1"]) == 0
    claim = replace(claim, value_ticks=best - 1)
    path = save(ScheduleFile(solution.timeline, best, claim), tmp_path / "schedule.json")
    assert main(["check", str(path)]) == 1  # the file states more than its certificate


def test_the_check_loads_neither_solver_nor_or_tools() -> None:
    wanted = "import sys, pipesched.checking.check; print([n for n in ('ortools', 'solver', 'formulations') if n in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", wanted], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_genuine_certificates_are_verified_where_blocks_are_shorter_than_their_passes() -> None:
    likely = next(branch.likely for branch in BRANCHES if branch.likely.blocks == 0.9)
    random, checked = Random(0), 0
    for _ in range(150):
        drawn = draw(random, likely)
        for one in certificates(drawn, drawn.objective):
            assert check_bound(drawn, one).verdict is Verdict.VERIFIED, (drawn, one)
            checked += 1
    assert checked > 300
