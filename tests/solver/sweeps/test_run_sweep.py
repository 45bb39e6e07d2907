"""Running a sweep: cells solved once, what neighbours learn of each other, interruption, failures, shares of time."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.files.schedule_file import read_schedule
from pipesched.problem.problem import Problem
from pipesched.results.evidence import MoreMemory, relaxation_of
from pipesched.results.evidence_document import evidence_document
from pipesched.results.solution import Status
from pipesched.sweeps.cells import Sweep
from pipesched.sweeps.outcome import Outcome, outcome_from
from pipesched.sweeps.packed import schedule_text, unpack
from pipesched.sweeps.store import Store
from pipesched.sweeps.table import State, Table
from pipesched.validation.validator import validate
from solver.bounds.analytic.catalogue import certificates
from solver.limits import Limits
from solver.solve import solve
from solver.sweeps import plan_start
from solver.sweeps.executor import Ended, InTurn
from solver.sweeps.neighbours import CARRIED, Neighbours
from solver.sweeps.process_pool import ProcessPool
from solver.sweeps.run_sweep import Moment, Options, run_sweep
from solver.sweeps.solve_cell import Task, solve_cell
from tests.support.counted import counted
from tests.support.sweeps import hard, outcome, sweep

LIMITS = Limits(seconds=30, workers=1)


class Pretended:
    """An executor that answers what it is told, two cells at a time, and remembers what it was asked."""

    slots = 2

    def __init__(self, answer: Any) -> None:
        self.asked: list[Task] = []
        self._answer, self._tasks = answer, list[Task]()
        self.stopped = False

    @property
    def running(self) -> frozenset[str]:
        return frozenset(task.key for task in self._tasks)

    def submit(self, task: Task) -> None:
        self.asked.append(task)
        self._tasks.append(task)

    def ended(self, seconds: float) -> list[Ended]:
        task = self._tasks.pop(0)
        found = self._answer(task)
        return [found if isinstance(found, Ended) else Ended(task.key, found)]

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None: ...


def ran(of: Sweep, path: Path, executor: Any, **options: Any) -> Table:
    with Store(path / "s.sqlite") as store:
        return run_sweep(of, store, executor, Options(**({"limits": LIMITS} | options)))


def test_every_cell_is_solved_as_if_alone_and_only_once(tmp_path: Path) -> None:
    of = sweep("memory=2,1,3", "microbatches=2,3")
    found = ran(of, tmp_path, InTurn(Event()))
    assert (found.solved, found.read, found.count(State.OPTIMAL)) == (6, 0, 6)
    for row in found.rows:
        problem = row.cell.problem
        assert isinstance(problem, Problem) and row.outcome is not None and row.outcome.schedule is not None
        alone = solve(problem, LIMITS)
        assert alone.value_ticks is not None
        assert row.value == row.lower_bound == alone.value_ticks * alone.problem.tick
        timeline = unpack(row.outcome.schedule).timeline
        assert validate(timeline) == [] and timeline.problem.pools == problem.pools
        assert {"1f1b", "gpipe", "zb"} <= {one.name for one in row.outcome.published}
    executor = Pretended(lambda task: pytest.fail("a cell that is known was solved"))
    again = ran(sweep("memory=1..3", "name=other", "microbatches=3,2"), tmp_path, executor)
    assert (again.solved, again.read, again.interrupted) == (0, 6, False)
    assert [row.value for row in again.rows if row.cell.place["memory"] == 2] == [
        row.value for row in found.rows if row.cell.place["memory"] == 2
    ][::-1]


def test_a_store_that_fills_up_ends_the_sweep_with_its_table(tmp_path: Path) -> None:
    of = sweep("memory=1..9")
    with Store(tmp_path / "s.sqlite") as store:
        store.enter(of)
        (pages,) = store._database.execute("PRAGMA page_count").fetchone()
        store._database.execute(f"PRAGMA max_page_count = {pages + 2}")  # as on a full disk
        found = run_sweep(of, store, InTurn(Event()), Options(LIMITS))
        assert "s.sqlite: cannot be written: database or disk is full" in found.not_stored
        kept = store.known(cell.key for cell in of.cells)
    shown = [row for row in found.rows if row.value is not None]
    assert found.interrupted and 0 < len(kept) < len(shown) < len(found.rows)
    again = ran(of, tmp_path, InTurn(Event()))
    assert (again.not_stored, again.interrupted, again.count(State.OPTIMAL)) == ("", False, 9)


def test_schedules_go_to_more_memory_and_bounds_to_less(tmp_path: Path) -> None:
    """Of three cells that are searched for no time at all, each ends with what is best for all."""
    cells = {cell.capacities[0]: cell for cell in sweep("memory=1..3", "microbatches=4").cells}
    known: dict[str, Outcome] = {}
    neighbours = Neighbours(cells.values(), known)
    good = solve_cell(Task(cells[1].key, cells[1].document, "x", LIMITS))
    assert good.value is not None and good.lower_bound is not None
    known[cells[1].key] = replace(good, lower_bound=Fraction(3), status=Status.FEASIBLE)
    known[cells[3].key] = replace(outcome(99, 7), claim="a device works 7")
    assert neighbours.floor(cells[2]) == 7
    assert (start := neighbours.start(cells[2])) is not None and start.value == good.value
    for other, found in neighbours.settled(cells[3]):
        known[other.key] = found
    least, most = known[cells[1].key], known[cells[3].key]
    assert (least.lower_bound, least.kind) == (7, CARRIED)
    assert "with a capacity of 3: a device works 7" in least.claim
    assert most.value == good.value and most.schedule is not None
    timeline = unpack(most.schedule).timeline
    assert timeline.problem.pools == cells[3].problem.pools and validate(timeline) == []
    assert list(neighbours.settled(cells[3])) == []


def test_a_bound_from_more_memory_keeps_its_evidence(tmp_path: Path) -> None:
    """A file of the cell with less memory carries it, and the check proves it there."""
    less, more = sweep("memory=2,3", "microbatches=4").cells
    assert isinstance(less.problem, Problem)
    assert isinstance(more.problem, Problem)
    own = solve_cell(Task(less.key, less.document, "x", LIMITS))
    strongest = next(one for one in certificates(more.problem, more.problem.objective) if one.kind == "load")
    assert strongest.evidence is not None
    proved = Fraction(strongest.value_ticks) * more.problem.tick
    source = replace(outcome(99, proved), kind="load", claim="x", evidence=evidence_document(strongest.evidence))
    known = {less.key: replace(own, lower_bound=Fraction(3), status=Status.FEASIBLE), more.key: source}
    for other, found in Neighbours((less, more), known).settled(less):
        known[other.key] = found
    kept = outcome_from(json.loads(json.dumps(known[less.key].document())), known[less.key].schedule)
    assert (kept.kind, kept.lower_bound) == (CARRIED, proved)
    path = tmp_path / "schedule.json"
    path.write_text(schedule_text(kept))
    file = read_schedule(path)
    assert file.certificate is not None
    assert isinstance(relaxation_of(file.certificate.evidence), MoreMemory)
    assert check_bound(file.timeline.problem, file.certificate).verdict is Verdict.VERIFIED


def test_nothing_goes_between_cells_that_differ_in_more(tmp_path: Path) -> None:
    cells = sweep("memory=1,2", "transfer=0,1").cells
    known: dict[str, Outcome] = {}
    neighbours = Neighbours(cells, known)
    known[cells[0].key] = outcome(30, 29)
    assert neighbours.floor(cells[3]) is None and neighbours.start(cells[3]) is None
    assert neighbours.floor(cells[2]) is None  # the bound of one unit says nothing of two
    known[cells[2].key] = outcome(20, 10)
    assert neighbours.floor(cells[0]) == 29 and neighbours.start(cells[0]) is None


def test_no_schedule_goes_where_the_validator_refuses_it(tmp_path: Path) -> None:
    """As if a cell with more memory had one with less: it takes more than there is."""
    few, many = sweep("memory=1,3", "microbatches=4").cells
    wide = solve_cell(Task(many.key, many.document, "x", LIMITS))
    known = {few.key: outcome(99, 1), many.key: wide}
    cells = [replace(few, number=1), replace(many, number=0)]
    for cell, capacities in zip(cells, [(Fraction(9),) * 2, (Fraction(1),) * 2], strict=True):
        cell.__dict__["capacities"] = capacities
    for other, found in Neighbours(cells, known).settled(cells[1]):
        assert other.key != few.key or found.value == 99


def test_the_search_ends_where_it_meets_the_bound_of_a_neighbour() -> None:
    cell = sweep("transfer=0.3", document=hard()).cells[0]
    free = solve_cell(Task(cell.key, cell.document, "x", Limits(seconds=0.5, workers=1)))
    assert free.value is not None and free.status is Status.FEASIBLE
    found = solve_cell(Task(cell.key, cell.document, "x", Limits(seconds=300, workers=1), free, free.value))
    assert found.finished and found.wall_seconds < 100
    assert found.value is not None and found.value <= free.value


def test_what_is_asked_again(tmp_path: Path) -> None:
    of = sweep("memory=1..3")
    with Store(tmp_path / "s.sqlite") as store:
        keys = [cell.key for cell in of.cells]
        store.keep(keys[0], outcome(10, 8))  # in five seconds
        store.keep(keys[1], outcome(10))
        store.keep(keys[2], replace(outcome(10, 8), finished=False))

    def asked(**options: Any) -> set[int]:
        executor = Pretended(lambda task: outcome(10, 8))
        ran(of, tmp_path, executor, **options)
        return {keys.index(task.key) for task in executor.asked}

    assert asked(again=True, limits=Limits(seconds=5)) == {2}  # interrupted before
    assert asked() == set()
    assert asked(again=True) == {0, 2}
    assert asked(again=True, limits=Limits(seconds=60, gap=0.5)) == set()


def test_a_process_that_dies_is_tried_again_and_an_error_is_a_row(tmp_path: Path) -> None:
    times: dict[str, int] = {}

    def answer(task: Task) -> Outcome | Ended:
        times[task.key] = times.get(task.key, 0) + 1
        if task.document["memory"]["capacity"] == 1:
            return Ended(task.key, None, "ValueError: no")
        if task.document["memory"]["capacity"] == 2 and times[task.key] == 1:
            return Ended(task.key, None, "ended from outside", lost=True)
        if task.document["memory"]["capacity"] == 3:
            return Ended(task.key, None, "ended from outside", lost=True)
        return outcome(10)

    of = sweep("memory=1..4")
    moments: list[Moment] = []
    with Store(tmp_path / "s.sqlite") as store:
        found = run_sweep(of, store, Pretended(answer), Options(LIMITS), moments.append)
    assert [row.state.value for row in found.rows] == ["failed", "optimal", "failed", "optimal"]
    said = {one.last.cell.number: one.last.state.value for one in moments if one.last is not None}
    assert said == {row.cell.number: row.state.value for row in found.rows} and moments[-1].done == 4
    assert [times[cell.key] for cell in of.cells] == [1, 2, 3, 1]
    assert found.rows[0].reason == "ValueError: no" and not found.interrupted
    executor = Pretended(lambda task: outcome(10))
    assert ran(of, tmp_path, executor).solved == len(executor.asked) == 2  # failures are no results


def test_a_stop_keeps_what_is_under_way(tmp_path: Path) -> None:
    of, stop, executor = (
        sweep("memory=1..5"),
        Event(),
        Pretended(lambda task: replace(outcome(10, 8), finished=False, schedule=b"some")),
    )

    def report(moment: Moment) -> None:
        if moment.last is not None:
            stop.set()

    with Store(tmp_path / "s.sqlite") as store:
        found = run_sweep(of, store, executor, Options(LIMITS), report, stop)
    assert executor.stopped and found.interrupted
    assert (len(executor.asked), found.count(State.FEASIBLE), found.count(State.WAITING)) == (2, 2, 3)
    executor = Pretended(lambda task: outcome(10))
    found = ran(of, tmp_path, executor)
    assert (len(executor.asked), found.count(State.OPTIMAL), found.interrupted) == (5, 5, False)
    assert sum(task.start is not None for task in executor.asked) >= 2  # they go on from what was found


def test_the_time_for_all_is_shared(tmp_path: Path) -> None:
    executor = Pretended(lambda task: outcome(10))
    ran(sweep("memory=1..8"), tmp_path, executor, total=8.0)
    assert [1.5 < task.limits.seconds <= 2.1 for task in executor.asked[:2]] == [True, True]
    assert executor.asked[-1].limits.seconds > 6  # what the others left
    assert executor.asked[0].limits.workers == 1


def test_of_a_family_the_most_memory_first_then_from_the_least(tmp_path: Path) -> None:
    executor = Pretended(lambda task: outcome(10, 9))
    ran(sweep("transfer=0,1", "memory=2,1,4,3"), tmp_path, executor)
    order = [(task.document["memory"]["capacity"], task.document["times"]["transfer"]) for task in executor.asked]
    assert order == [(4, 0), (4, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]


def test_plans_start_from_plans_with_less_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no time to search, what is found is no worse than the start; without one it is worse than the best.

    Two published schedules are compared in place of all.
    """
    monkeypatch.setattr(plan_start, "HEURISTICS", SimpleNamespace(names=lambda: ("1f1b", "zb-h1")))
    layers = [{"name": "a", "count": 4, "forward": 2, "backward": 3, "weight": 2, "memory": 1, "activation": 1}]
    document = {"devices": 2, "microbatches": 2, "placement": ["linear"], "layers": layers}
    of = sweep("memory=4,6", document=document | {"memory": {"capacity": 9}})
    found = ran(of, tmp_path, InTurn(Event()), limits=counted(0.01))
    few, many = (row.outcome for row in found.rows)
    assert few is not None and many is not None and few.value is not None and many.value is not None
    assert few.value > many.value and few.choice is not None and few.published

    def quick(start: Outcome | None) -> Fraction:
        value = solve_cell(Task("k", of.cells[1].document, "x", Limits(seconds=1e-4, workers=1), start)).value
        assert value is not None
        return value

    assert quick(few) <= few.value and quick(many) == many.value < quick(None)


def test_a_plan_of_some_schedules_is_compared_with_those_alone(tmp_path: Path) -> None:
    layers = [{"name": "a", "count": 4, "forward": 2, "backward": 3, "weight": 2, "memory": 1, "activation": 1}]
    document = {"devices": 2, "microbatches": 3, "placement": "linear", "layers": layers}
    of = sweep("schedule=1f1b,free", document=document)
    found = ran(of, tmp_path, InTurn(Event()), limits=counted(0.1))
    named, free = (row.outcome for row in found.rows)
    assert named is not None and free is not None
    assert [one.name for one in named.published] == ["1f1b"] and len(free.published) > 5
    assert found.rows[0].ratio == 1


def test_published_schedules_beside_a_free_plan_have_partitions_of_their_own() -> None:
    """A head as long as two layers: 1f1b and zb-h1 are best on other partitions than the plan of any order."""
    layer = {"name": "a", "count": 9, "forward": 2, "backward": 3, "weight": 2, "activation": 1}
    layers = [layer, {"name": "head", "forward": 4, "backward": 5, "weight": 4, "activation": 0}]
    document = {"devices": 3, "microbatches": 4, "placement": "linear", "layers": layers}
    limits = counted(0.1)
    free = solve_cell(Task("k", document, "x", limits))
    values = {one.name: one.value for one in free.published}
    for name in ("1f1b", "zb-h1"):
        alone = solve_cell(Task("k", document | {"schedule": name}, "x", limits))
        assert values[name] == alone.value and free.value is not None and alone.value is not None
        assert free.value <= alone.value


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_pool_survives_the_end_of_its_processes(tmp_path: Path) -> None:
    """One of its processes is killed with cells under way; all cells are solved in the end, each once."""
    of, killed = sweep("memory=1..3", "microbatches=2"), list[int]()
    pool = ProcessPool(1)

    def report(moment: Moment) -> None:
        if moment.last is not None and not killed:
            process = next(iter(pool._pool._processes.values()))
            killed.append(process.pid or 0)
            os.kill(killed[0], signal.SIGKILL)

    try:
        with Store(tmp_path / "s.sqlite") as store:
            found = run_sweep(of, store, pool, Options(LIMITS), report)
            assert [store.solves(cell.key) for cell in of.cells] == [1, 1, 1]
    finally:
        pool.close()
    assert killed and found.count(State.OPTIMAL) == 3


def test_an_error_in_a_cell_is_an_answer() -> None:
    executor = InTurn(Event())
    executor.submit(Task("k", {"devices": 2}, "x", LIMITS))
    (ended,) = executor.ended(0)
    assert ended.outcome is None and ended.failure.startswith("BadInput: ") and not ended.lost


def test_periods_are_swept_and_compared_with_those_of_published_schedules(tmp_path: Path) -> None:
    times = {"forward": 10, "backward": 1, "transfer": 50}
    document = {"devices": 2, "microbatches": 4, "times": times, "objective": "period"}
    found = ran(sweep("microbatches=3,4", document=document), tmp_path, InTurn(Event()))
    assert found.count(State.OPTIMAL) == 2
    for row in found.rows:
        assert row.outcome is not None and row.value == row.outcome.period == 11
        assert {one.name: one.value for one in row.outcome.published if one.fits}["1f1b"] == 61
