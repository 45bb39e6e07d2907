"""The ablation: every part of the engine is there, left out where it does most, and its losses are told."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from benchmarks import ablation
from benchmarks.cases.engine_subsolvers import COMPONENTS, NO_PARTS, plain
from benchmarks.cases.profiles import unit
from benchmarks.reporting.page import END, begin
from pipesched.errors import BadInput
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution
from solver.bounds.analytic.catalogue import BOUNDS
from solver.engine.clock import Clock
from solver.engine.engine import ENGINE
from solver.engine.search import SEARCH, Engine
from solver.limits import Limits
from solver.solve import solve

BY_NAME = {part.name: part for part in COMPONENTS}


def names_of(engine: Engine) -> set[str]:
    return {one.name for one in engine.construction} | {one.name for one in engine.members}


def test_every_opening_part_and_bound_is_left_out_once() -> None:
    assert {name for part in COMPONENTS for name in part.takes} >= names_of(ENGINE) - {*NO_PARTS}
    assert {bound.name for bound in BOUNDS if not bound.several_streams} <= {
        kind for part in COMPONENTS for kind in part.kinds
    }
    assert len({part.variant for part in COMPONENTS}) == len(COMPONENTS)


def test_the_ablation_takes_problems_of_every_kind() -> None:
    problems = ablation.chosen(0)
    kinds = " ".join(problem.name for problem in problems)
    assert all(
        kind in kinds
        for kind in (
            *("linear", "wave", "interleaved", "V", "bidirectional", "blocks", "fused", "zb-", "DynaPipe"),
            *("exchange", "offload", "recompute", "both", "gathers"),
        )
    )
    assert any(3 * problem.placement.stages * problem.microbatches > SEARCH.very_long for problem in problems)


def test_a_run_measures_what_is_not_there_and_writes_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Engine] = []

    def fake(problem: Problem, limits: Limits, engine: Engine) -> Solution:
        asked.append(engine)
        return replace(solve(problem, limits), parts=(("published schedules", 1.0),))

    monkeypatch.setattr("benchmarks.reporting.record.solve", fake)
    monkeypatch.setattr(ablation, "chosen", lambda _: [unit(4, 8, "span", name="tiny")])
    page = tmp_path / "page.md"
    page.write_text(f"{begin(ablation.COMMAND)}\n{END}\n")
    args = Namespace(
        problems=None,
        parts=["published schedules", "windows"],
        seconds=5,
        workers=1,
        seed=0,
        resume=True,
        results=tmp_path / "results.json",
        write=page,
        units=None,
    )
    assert ablation.run(args) == 0
    # One for a moment, the whole engine, the plain one, and the one part that took time.
    assert asked == [ENGINE, ENGINE, plain(), BY_NAME["published schedules"].engine]
    written = page.read_text()
    assert "| published schedules | 1 |" in written and "prove: windows." in written
    assert ablation.run(args) == 0 and len(asked) == 4
    assert page.read_text() == written


def test_a_solve_tells_which_parts_took_how_long() -> None:
    solution = solve(unit(4, 8, "span", name="tiny"), Limits(seconds=5, workers=1))
    parts = dict(solution.parts)
    assert {"analytic bounds", "published schedules"} <= set(parts)
    assert 0 < sum(parts.values()) <= solution.wall_seconds


def test_a_family_of_bounds_can_be_left_out() -> None:
    problem, limits = unit(4, 8, "span"), Limits()
    known, late = ENGINE.bounds.certificates(problem, Clock(limits), Event())
    left, _ = BY_NAME["bound: head and tail"].engine.bounds.certificates(problem, Clock(limits), Event())
    assert not late and [one for one in known if one.kind != "head and tail"] == left != known


def test_a_part_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadInput, match=r"found 'windowz'.*did you mean 'windows'"):
        ablation.wanted(["windowz"])
    assert ablation.wanted(None) == COMPONENTS and [part.name for part in ablation.wanted(["windows"])] == ["windows"]
