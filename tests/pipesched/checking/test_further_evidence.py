"""The check of periods and bounds from more memory: what is genuine is verified, and nothing beyond it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest

from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.bound_problems import draw
from commands.main import main
from pipesched.checking.check import check_bound
from pipesched.checking.finding import NotCoveredError, Verdict
from pipesched.errors import Disagreement
from pipesched.files.schedule_file import ScheduleFile, save
from pipesched.problem.attainable_spans import simplest
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import (
    MoreMemory,
    OfRelaxed,
    OnDevice,
    Refutation,
    UnknownForm,
)
from pipesched.results.evidence_document import evidence_document, evidence_from
from solver.backends.recheck_refutation import recheck_refutation
from solver.bounds.analytic.catalogue import certificates
from solver.cyclic import solve_period
from solver.cyclic.period_bounds import PeriodCertificate, period_certificates
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import problem
from tests.support.task_brute_force import optimum, tiny_tasks

WORK = counted(0.5)


def drawn(count: int, seed: int, objective: Objective | None = None) -> list[Problem]:
    random = Random(seed)
    found = [draw(random, random.choice(BRANCHES).likely) for _ in range(count)]
    chosen = (Objective.MAKESPAN, Objective.SPAN) if objective is None else (objective,)
    return [replace(one, objective=random.choice(chosen)) for one in found]


def test_bounds_of_periods_are_verified() -> None:
    kinds = dict[str, int]()
    for one in drawn(60, seed=2, objective=Objective.PERIOD):
        for each in period_certificates(one):
            certificate = Certificate(each.kind, simplest(each.value), "", each.device, each.evidence)
            assert check_bound(one, certificate).verdict is Verdict.VERIFIED
            if each.value:  # where nothing is claimed, the check may prove a little
                more = replace(certificate, value_ticks=simplest(each.value * 2 + 1))
                assert check_bound(one, more).verdict is Verdict.REFUSED
            kinds[each.kind] = kinds.get(each.kind, 0) + 1
    assert len(kinds) == 4 and min(kinds.values()) > 10


@pytest.mark.meets_defects
def test_a_period_is_reported_with_evidence_and_checked_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = problem(2, 4, times={"forward": 2, "backward": 2, "weight": 1}, objective="period")
    solution = solve(one, WORK)
    assert solution.timeline is not None
    path = save(ScheduleFile.of(solution, solution.timeline), tmp_path / "schedule.json")
    assert main(["check", str(path)]) == 0
    assert "verified: no schedule is below 5 (load" in capsys.readouterr().out
    false = PeriodCertificate("load", Fraction(6), "It says more.", 0, OnDevice(0))
    known = period_certificates(one)
    monkeypatch.setattr(solve_period, "period_certificates", lambda *_: [false, *known])
    found = solve(one, WORK)
    assert found.lower_bound_ticks == solution.lower_bound_ticks
    assert any("did not stand the check" in note for note in found.notes)


def test_a_bound_with_more_memory_holds_with_less(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = {"forward": 2, "backward": 2, "weight": 1}
    more, less = (problem(2, 4, times=times, memory={"capacity": own}) for own in (2, 1))
    strongest = certificates(more, more.objective)[0]
    assert strongest.evidence is not None
    held = OfRelaxed(MoreMemory((Fraction(2),) * 2), strongest.kind, strongest.evidence)
    assert evidence_from(json.loads(json.dumps(evidence_document(held)))) == held
    carried = replace(strongest, kind="bound with more memory", evidence=held)
    assert check_bound(less, carried).verdict is Verdict.VERIFIED
    assert check_bound(less, replace(carried, value_ticks=carried.value_ticks * 2)).verdict is Verdict.REFUSED
    limited = replace(held, relaxation=MoreMemory((Fraction(1), Fraction(2))))
    assert check_bound(more, replace(carried, evidence=limited)).verdict is Verdict.REFUSED
    assert (
        check_bound(less, replace(carried, evidence=replace(held, relaxation=MoreMemory(())))).verdict
        is Verdict.REFUSED
    )
    searched = replace(held, kind="exhaustive search by CP-SAT", evidence=Refutation(None))
    best = solve(less, WORK)
    assert best.timeline is not None
    claim = replace(carried, evidence=searched)
    path = save(ScheduleFile(best.timeline, int(claim.value_ticks), claim), tmp_path / "schedule.json")
    assert main(["check", str(path), "--again", "--workers", "1"]) == 0
    assert "with other parameters it proved the same" in capsys.readouterr().out
    within = {"form": "more memory", "capacities": ["1"], "kind": "load", "evidence": evidence_document(held)}
    for wrong in (within, within | {"capacities": ["x"]}, within | {"capacities": []}):
        assert isinstance(evidence_from(wrong), UnknownForm)


@pytest.mark.parametrize(
    "taken",
    (
        {"memory": {"workspace": {"forward": 1}}},
        {"parameters": {"gather": {"memory": 1}, "step": {"time": 1}}, "objective": "iteration"},
    ),
)
def test_capacities_of_more_memory_are_those_before_workspace_and_parameters(taken: dict[str, Any]) -> None:
    times = {"forward": [2, 1], "backward": [1, 3], "weight": [0, 2], "fused": [1, 4]}
    more, less = (
        problem(2, 3, times=times, **(taken | {"memory": taken.get("memory", {}) | {"capacity": own, "activation": 3}}))
        for own in (6, 4)
    )
    strongest = certificates(more, more.objective)[0]
    assert strongest.evidence is not None
    held = OfRelaxed(MoreMemory((Fraction(6),) * 2), strongest.kind, strongest.evidence)
    carried = replace(strongest, kind="bound with more memory", evidence=held)
    assert check_bound(more, strongest).verdict is Verdict.VERIFIED
    assert check_bound(less, carried).verdict is Verdict.VERIFIED


def test_searches_of_passes_made_of_tasks_are_repeated() -> None:
    random = Random(4)
    one = next(p for p in (tiny_tasks(random) for _ in range(50)) if not p.overlaps and optimum(p, p.objective))
    best = optimum(one, one.objective)
    assert best is not None
    assert recheck_refutation(one, best, Refutation(None), WORK, Event()) is True
    with pytest.raises(Disagreement, match="CP-SAT found a schedule"):
        recheck_refutation(one, best + 5, Refutation(None), WORK, Event())
    with pytest.raises(NotCoveredError, match="period"):
        recheck_refutation(replace(one, objective=Objective.PERIOD), best, Refutation(None), WORK, Event())
