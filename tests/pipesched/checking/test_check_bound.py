"""The check of bounds: what it refuses and why, what it leaves open, its names, and that a solve drops what it refuses."""

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

from commands.main import main
from pipesched.checking.check import ARGUMENTS, check_bound
from pipesched.checking.finding import Verdict
from pipesched.files.schedule_file import ScheduleFile, read_schedule, save
from pipesched.problem.problem import Objective, Problem
from pipesched.results.bound_names import bound_name
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import (
    MemoryOfDevice,
    OnDevice,
    OnStream,
    Refutation,
    StreamMemory,
    StreamTasks,
    StreamWeights,
)
from solver.backends.recheck_refutation import recheck_refutation
from solver.bounds.analytic.catalogue import BOUNDS, certificates
from solver.engine.clock import Clock
from solver.engine.incumbent.incumbent import Incumbent
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import problem
from tests.support.task_brute_force import optimum, tiny_tasks

WORK = counted(0.5)


def plain(objective: str = "makespan", **keys: object) -> Problem:
    times = {"forward": 2, "backward": 2, "weight": 1, "transfer": 0.5}
    return problem(3, 4, times=times, objective=objective, **keys)


def test_what_is_not_understood_is_not_verified() -> None:
    one, load = plain(), Certificate("load", 20, "", 0, OnDevice(0))
    assert check_bound(one, load).verdict is Verdict.VERIFIED
    assert check_bound(one, replace(load, evidence=None)).verdict is Verdict.NOT_VERIFIED
    assert check_bound(one, replace(load, kind="a new argument")).verdict is Verdict.NOT_VERIFIED
    period = replace(one, objective=Objective.PERIOD)
    assert check_bound(period, replace(load, kind="round trip")).verdict is Verdict.NOT_VERIFIED
    assert (
        check_bound(replace(one, resources=replace(one.resources, transfer_stream="comm")), load).verdict
        is Verdict.NOT_VERIFIED
    )
    assert check_bound(one, replace(load, evidence=Refutation(None))).verdict is Verdict.TRUSTED


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


@pytest.mark.meets_defects
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
    assert checked()[1]["bound"] == "not verified"
    del document["certificate"]["evidence"]  # as older versions wrote it
    path.write_text(json.dumps(document))
    assert checked()[0] == 0 and read_schedule(path).certificate is not None


def test_refutations_by_cp_sat_are_trusted_and_repeated(tmp_path: Path) -> None:
    one = problem(2, 2, times={"forward": 2, "backward": 2, "weight": 1})
    solution = solve(one, WORK)
    assert solution.timeline is not None and solution.lower_bound_ticks == solution.value_ticks
    best, searched = solution.lower_bound_ticks, Refutation(None)
    assert recheck_refutation(one, best, searched, WORK, Event()) is True
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


def test_names_tell_kinds_apart_and_use_no_house_words() -> None:
    names = [bound_name(kind) for kind in ARGUMENTS]
    assert len(set(names)) == len(names)
    assert not [name for name in names if "crossings" in name or "round trip" in name]


def test_the_check_says_the_name_and_the_file_the_kind() -> None:
    one = problem(4, 8, times={"forward": 2, "backward": 3}, memory={"capacity": 4})
    (found, *_) = BOUNDS["round trip"].certify(one, Objective.MAKESPAN)
    assert found.document()["kind"] == "round trip"
    assert "(pipeline latency under the memory limit, checked" in check_bound(one, found).text
