"""An error in any one part of a solve is noted, and the solve gives a valid answer all the same."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import OutOfRange, is_defect
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.relaxation import Relaxation, RelaxedProblem
from pipesched.problem.relaxed.relaxations import ARCS_BETWEEN_CHAINS, FURTHER_RESOURCES
from pipesched.results.certificate import Certificate
from pipesched.results.solution import Solution, Status
from pipesched.validation.validator import validate
from solver import published
from solver.bounds.analytic import catalogue
from solver.bounds.analytic.catalogue import BOUNDS
from solver.bounds.saving.memory_and_copies import KIND
from solver.cyclic import period_bounds, period_search, problem_period, solve_period
from solver.cyclic.period_bounds import period_certificates
from solver.engine import analytic_bounds, finish, relaxed
from solver.engine.allocation import Allocation
from solver.engine.analytic_bounds import AnalyticBounds
from solver.engine.clock import Clock
from solver.engine.engine import ENGINE
from solver.engine.incumbent import incumbent
from solver.engine.incumbent.state import OF_BARE_TIME
from solver.engine.search import ConstructionHeuristic, Search, Subsolver, members_of
from solver.engine.slices import Work
from solver.solve import solve
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.makers import problem
from tests.support.subsolvers import MadeSubsolver, open_search

pytestmark = pytest.mark.meets_defects

COUNTED = counted(1)
PLAIN = problem(3, 4, memory={"capacity": 2})
TASKS = problem_from(
    {
        "devices": 2, "microbatches": 3, "streams": ["compute", "comm"], "times": {"transfer": 1},
        "tasks": {
            "forward": [{"name": "a", "time": 3}, {"name": "s", "time": 2, "on": "comm"}],
            "backward": [{"name": "b", "time": 4}, {"name": "t", "time": 2, "on": "comm"}],
        },
    }
)  # fmt: skip


def fails(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("of this part")


@dataclass(frozen=True)
class Broken:
    """A part, or an opening, that serves every problem and of which one method raises an error."""

    of: Any
    method: str

    def __getattr__(self, name: str) -> Any:
        if name == self.method:
            return fails
        return {"serves": lambda _: True, "applies": lambda _: True, "kernels": lambda _: None}.get(name) or getattr(
            self.of, name
        )


def answered(found: Solution, noted: str = "ZeroDivisionError") -> None:
    assert found.timeline is not None and not validate(found.timeline)
    assert any(is_defect(note) and noted in note for note in found.notes), found.notes


@pytest.mark.parametrize("method", ["serves", "kernels", "work"])
@pytest.mark.parametrize(
    "part", [way for part in ENGINE.subsolvers for way in members_of(part)], ids=lambda part: part.name
)
def test_of_a_part(part: Subsolver, method: str) -> None:
    search, units = open_search(counted(4), ENGINE), list[float | None]()

    @dataclass(frozen=True)
    class Other(MadeSubsolver):
        def work(self, _: Search) -> Work:
            while True:
                units.append((yield).units)

    Allocation(search, (Broken(part, method), Other("other"))).run()
    assert len(units) == 4
    assert any(is_defect(note) and "ZeroDivisionError" in note for note in search.incumbent.state.notes)


@pytest.mark.parametrize("method", ["applies", "run"])
@pytest.mark.parametrize("opening", ENGINE.construction[2:], ids=lambda opening: opening.name)
def test_of_an_opening(opening: ConstructionHeuristic, method: str) -> None:
    openings = Broken(opening, method), *ENGINE.construction
    found = solve(PLAIN, COUNTED, engine=replace(ENGINE, construction=openings, subsolvers=()))
    answered(found)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (published, "simulated_and_validated"),
        (finish, "refined"),
        (incumbent, "check_bound"),
        (analytic_bounds, "certificates"),
    ],
)
def test_of_what_all_parts_share(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, fails)
    answered(solve(PLAIN, COUNTED))


def test_of_the_search_of_plain_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relaxed, "relaxed", fails)
    search = Search(TASKS, COUNTED, lambda _: None, Event(), ENGINE)
    allocation = Allocation(search, ENGINE.subsolvers)
    assert allocation.arms and any("ZeroDivisionError" in note for note in search.incumbent.state.notes)


def test_of_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(own: Any, objective: Any, in_time: Callable[..., Any]) -> list[Any]:
        return [*certify(own, objective, in_time), *in_time("broken", fails)]

    certify = analytic_bounds.certificates
    monkeypatch.setattr(analytic_bounds, "certificates", run)
    found = solve(PLAIN, COUNTED)
    answered(found)
    assert found.status is Status.OPTIMAL  # the others are as strong as ever


MODES = problem_from(
    {
        "devices": 3, "microbatches": 4, "streams": ["compute", "d2h", "h2d"],
        "times": {"forward": 2, "backward": 4}, "memory": {"capacity": 3, "offload": {"out": 1, "in": 1}},
    }
)  # fmt: skip


def certified(one: Problem, left_out: Collection[str] = ()) -> tuple[list[Certificate], list[str]]:
    """The certificates with which a search begins, and notes on what failed."""
    return AnalyticBounds(left_out=frozenset(left_out)).certificates(one, Clock(COUNTED), Event())


@pytest.mark.parametrize("one", [PLAIN, TASKS, MODES], ids=["plain", "tasks", "modes"])
@pytest.mark.parametrize("name", BOUNDS.names())
def test_of_each_bound(one: Problem, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The load is one of them."""
    others = [found for found in certified(one, [name])[0] if found.kind != "load" or name != "load"]
    bound, called = BOUNDS[name], list[str]()

    def broken(*_: object) -> list[Certificate]:
        called.append(name)
        return fails()  # type: ignore[no-any-return]

    monkeypatch.setitem(BOUNDS._items, name, replace(bound, certify=broken))
    found, notes = certified(one)
    assert found == (others or [OF_BARE_TIME]) and len(found) > 1
    assert [is_defect(note) and repr(name) in note for note in notes] == [True] * bool(called)


@pytest.mark.parametrize("one", [TASKS, MODES], ids=["tasks", "modes"])
@pytest.mark.parametrize("relaxation", [FURTHER_RESOURCES, ARCS_BETWEEN_CHAINS], ids=lambda one: one.name)
def test_of_a_relaxation(one: Problem, relaxation: Relaxation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds that do without it are certified, and one note names all others."""
    able = {KIND, *(bound.name for bound in BOUNDS if relaxation in bound.keeping)}
    without = [found for found in certified(one)[0] if found.kind in able]

    def broken(problem: Problem, keeping: Collection[Relaxation] = ()) -> RelaxedProblem:
        return relaxed_problem(problem, keeping) if relaxation in keeping else fails()  # type: ignore[no-any-return]

    relaxed_problem = catalogue.relaxed
    monkeypatch.setattr(catalogue, "relaxed", broken)
    found, notes = certified(one)
    assert found == without != [OF_BARE_TIME]
    (note,) = notes
    assert is_defect(note) and all((repr(bound.name) in note) is (bound.name not in able) for bound in BOUNDS)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (period_search, "PeriodicModel"),
        (problem_period, "read_pattern"),
        (problem_period, "read_pattern_anywhere"),
        (solve_period, "read_pattern"),
        (solve_period, "check_bound"),
    ],
)
def test_of_a_solve_for_the_period(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if module is period_search:
        monkeypatch.setattr(problem_period, "read_pattern_anywhere", lambda *_: None)
    if module is period_search or name == "read_pattern_anywhere":  # nothing is known before
        monkeypatch.setattr(problem_period, "read_pattern", lambda *_: None)
    monkeypatch.setattr(module, name, fails)
    found = solve(problem(3, 6, objective="period"), COUNTED)
    assert found.timeline is not None and not validate(found.timeline)
    noted = [*found.notes, *(one.reason for one in found.candidates)]
    assert any(is_defect(note) and "ZeroDivisionError" in note for note in noted)


@pytest.mark.parametrize("name", period_bounds._BOUNDS)
def test_of_one_bound_of_a_period(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The load too; where all fail, nothing is below zero."""
    one = problem(3, 6, objective="period", memory={"capacity": 2})
    others = [found for found in period_certificates(one) if found.kind != name]
    monkeypatch.setitem(period_bounds._BOUNDS, name, fails)
    notes = list[str]()
    assert period_certificates(one, notes) == others and others
    assert [is_defect(note) and repr(name) in note for note in notes] == [True]
    if name in daily([*period_bounds._BOUNDS], 3):
        answered(solve(one, COUNTED), repr(name))
    monkeypatch.setattr(period_bounds, "drop_pass_memory", fails)
    assert period_certificates(one, notes) == [period_bounds.NOTHING]
    if name == next(iter(period_bounds._BOUNDS)):
        answered(solve(one, COUNTED), repr(name))


def test_numbers_too_large_for_a_part_are_no_defect() -> None:
    def too_large(*_: Any) -> Any:
        raise OutOfRange("its numbers exceed 1.2e+18")

    search = open_search(COUNTED, ENGINE)
    with search.incumbent.defects_noted("beam search"):
        too_large()
    assert search.incumbent.state.notes[-1] == "beam search left out: its numbers exceed 1.2e+18"


def test_a_published_schedule_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "_candidate", lambda own, one: fails() if one.name == "gpipe" else _kept(own, one))
    found = solve(PLAIN, COUNTED)
    answered(found)
    assert {one.name for one in found.candidates} == set(HEURISTICS.names())


_kept = published._candidate
