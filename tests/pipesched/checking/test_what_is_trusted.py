"""What is trusted is a search that CP-SAT can have made; evidence holds in finer ticks; single tasks are plain passes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest

from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.bound_problems import draw
from commands.main import main
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.files.problems.document import problem_document
from pipesched.files.schedule_file import ScheduleFile, save
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.rescale import finer
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import Refutation
from pipesched.results.evidence_document import evidence_document, evidence_from
from solver.bounds.analytic.catalogue import certificates
from solver.diagram.by_device import bounds_by_device
from solver.diagram.modelled_stages import by_chain
from solver.diagram.threshold_bounds import bounds_of_devices, bounds_of_stages
from solver.diagram.threshold_search import ThresholdSearch
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import problem

WORK = counted(0.5)
TIMES: dict[str, Any] = {"forward": 2, "backward": 2, "weight": 1}


def searched(devices: tuple[int, ...] | None, value: int = 7) -> Certificate:
    return Certificate("exhaustive search by CP-SAT", value, "", None, Refutation(devices))


def written(one: Problem, claim: Certificate, path: Path, **keys: Any) -> str:
    """A schedule file of the problem with this certificate, and what else it says."""
    found = solve(one, WORK)
    assert found.timeline is not None
    save(ScheduleFile(found.timeline, int(claim.value_ticks), claim, found.value_ticks), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))
    return str(path)


def test_a_search_of_a_period_is_refused_and_no_bound_is_above_the_value(tmp_path: Path, capsys: Any) -> None:
    one = problem(2, 4, times=TIMES, objective="period")
    assert check_bound(one, searched(None)).verdict is Verdict.REFUSED
    path = written(one, searched(None, 9), tmp_path / "schedule.json")
    assert main(["check", path]) == 1
    said = capsys.readouterr().out
    assert "a lower bound of 9, above" in said and "refused: " in said
    for again in ([], ["--again"]):
        assert main(["check", path, *again]) == 1


@pytest.mark.parametrize("devices", [(), (2,), (-1,), (0, 7), (10**30,), (0, 0)])
def test_a_search_of_devices_that_are_not_there_is_refused(devices: tuple[int, ...], tmp_path: Path) -> None:
    one = problem(2, 4, times=TIMES)
    assert check_bound(one, searched(devices)).verdict is Verdict.REFUSED
    assert main(["check", written(one, searched(devices), tmp_path / "s.json"), "--again"]) == 1


@pytest.mark.parametrize("form", ["tasks", "offload", "recompute"])
def test_a_search_of_some_devices_of_tasks_is_trusted_and_repeated(form: str, tmp_path: Path, capsys: Any) -> None:
    keys: dict[str, Any] = {"times": TIMES}
    if form == "tasks":
        two = [{"name": "a", "time": 1}, {"name": "b", "time": 1, "on": "comm"}]
        keys = {"streams": ["compute", "comm"], "tasks": {"forward": two, "backward": two}, "times": {"transfer": 0}}
    elif form == "offload":
        keys |= {"streams": ["compute", "copy"]}
        keys |= {"memory": {"capacity": 3, "offload": {"out": 1, "in": 1, "on": "copy"}}}
    else:
        keys |= {"memory": {"capacity": 3, "recompute": [{"name": "full", "time": 1, "keeps": 0}]}}
    one = problem(2, 3, **keys)
    assert check_bound(one, searched(None)).verdict is Verdict.TRUSTED
    assert check_bound(one, searched((0,))).verdict is Verdict.TRUSTED
    best = solve(one, WORK).value_ticks
    assert best is not None
    for claimed, code in ((1, 0), (int(best) + 5, 1)):
        assert main(["check", written(one, searched((0,), claimed), tmp_path / "s.json"), "--again"]) == code


def test_evidence_of_orders_below_a_value_holds_in_finer_ticks() -> None:
    """The weakest and the strongest certificate that each family of bounds finds."""
    random, chains = Random(3), Counter[int]()
    for _ in range(10):
        if min(chains[1], chains[2]) > 2:
            break
        one = draw(random, random.choice(BRANCHES).likely)
        if one.objective == Objective.PERIOD or one.walks.scale:
            continue
        near = ceil(max((each.value_ticks for each in certificates(one, one.objective)), default=1)) + 1
        ends = list[Certificate]()
        for bounds in (bounds_of_devices, bounds_by_device, partial(bounds_of_stages, device=0)):
            found = [*bounds(ThresholdSearch(one, Event(), lambda near=near: (near // 2, near)))]
            for genuine in [*found[:1], *found[-1:]]:
                assert isinstance(genuine.evidence, Diagram)
                chains[len(by_chain(one, genuine.evidence.stages))] += 1
                ends += [] if genuine in ends else [genuine]
        for genuine in ends:
            _holds_in_finer_ticks(one, genuine)
    assert min(chains[1], chains[2]) > 1, chains


def _holds_in_finer_ticks(one: Problem, genuine: Certificate) -> None:
    assert genuine.evidence is not None
    assert evidence_from(evidence_document(genuine.evidence)) == genuine.evidence
    # Where no schedule has the next value either, the check says so.
    exact = check_bound(one, replace(genuine, value_ticks=genuine.value_ticks + 1)).verdict is Verdict.REFUSED
    parts = 2 + int(genuine.value_ticks) % 2
    fine, claim = finer(one, parts), replace(genuine, value_ticks=genuine.value_ticks * parts)
    assert check_bound(fine, claim).verdict is Verdict.VERIFIED, genuine
    refused = check_bound(fine, replace(claim, value_ticks=claim.value_ticks + parts)).verdict is Verdict.REFUSED
    assert refused == exact, genuine


def test_tasks_of_which_each_is_a_pass_are_checked_as_plain_passes(tmp_path: Path, capsys: Any) -> None:
    tasks = {"forward": [{"name": "f", "time": [2, 3]}], "backward": [{"name": "b", "time": 3}]}
    one = problem(2, 3, tasks=tasks, times={"transfer": 1}, memory={"capacity": 1}, objective="span")
    plain = problem(
        2, 3, times={"forward": [2, 3], "backward": 3, "transfer": 1}, memory={"capacity": 1}, objective="span"
    )
    assert "tasks" in problem_document(one)
    for genuine in certificates(plain, plain.objective):
        assert check_bound(one, genuine).verdict is check_bound(plain, genuine).verdict is Verdict.VERIFIED
        assert check_bound(one, replace(genuine, value_ticks=genuine.value_ticks + 1)).verdict is Verdict.REFUSED
    solution = solve(one, WORK)
    assert solution.timeline is not None
    path = save(ScheduleFile.of(solution, solution.timeline), tmp_path / "schedule.json")
    assert main(["check", str(path)]) == 0
    assert "so it is optimal" in capsys.readouterr().out
