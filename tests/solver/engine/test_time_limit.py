"""The time limit and a stop end whatever is under way, as deep as the loop is that asks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import NoReturn

import pytest

from commands.shared import not_applicable
from heuristics.catalogue import HEURISTICS
from pipesched.deadline import asking
from pipesched.results.certificate import Certificate
from pipesched.results.solution import Status
from pipesched.schedule.timeline import Timeline
from pipesched.validation.violation import Violation
from solver.analysis import published_comparison, robustness
from solver.bounds.analytic.catalogue import BOUNDS
from solver.construction import list_scheduling
from solver.cyclic import problem_period
from solver.engine import compile_kernels, finish, kernels, search
from solver.engine.clock import Clock
from solver.engine.construction import published
from solver.engine.engine import ENGINE
from solver.engine.incumbent import incumbent
from solver.engine.run import run
from solver.engine.subsolvers.local_search import LocalSearch
from solver.limits import Limits
from solver.solve import solve, without_search
from tests.support.makers import problem

LIMITS = Limits(seconds=1.0, workers=1)


class SteppedClock(Clock):
    """Clock on which only looks at whether kernels are compiled take time, 0.1 s each."""

    def __init__(self, limits: Limits, compiled: kernels.Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(limits)
        self._looks, wait = 0, compiled.wait

        def looked(over: Callable[[], bool], most: int = 1) -> bool:
            self._looks += 1
            return wait(over, most)

        monkeypatch.setattr(compiled, "wait", looked)

    @property
    def seconds(self) -> float:
        return 0.1 * self._looks


def forever(*_: object) -> NoReturn:
    """A loop that asks, and comes to no end."""
    for _ in asking(count()):
        pass
    raise AssertionError


def test_patterns_are_read_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """One published schedule of a long run may take longer than all of the time."""
    monkeypatch.setattr(problem_period, "_schedules", forever)
    found = problem_period.best_period(problem(devices=2, microbatches=4), LIMITS)
    assert found.pattern is not None  # one micro-batch after another


def test_a_published_schedule_that_takes_forever_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "candidate", forever)
    found = solve(problem(2, 3), LIMITS)
    assert found.timeline is not None and not found.candidates


def test_the_first_that_fits_is_not_lost_for_want_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judging it takes longer than any deadline under which it is judged."""
    judge = incumbent.validate

    def slowly(timeline: Timeline) -> list[Violation]:
        endless = count()
        if asking(endless) is not endless:  # there is a deadline
            forever()
        return judge(timeline)

    monkeypatch.setattr(incumbent, "validate", slowly)
    monkeypatch.setattr(published, "HEURISTICS", [HEURISTICS["1f1b"]])
    opening = published.PublishedSchedules(share=0.001, first_seconds=60.0)
    engine = replace(ENGINE, construction=(opening,), subsolvers=(), finish=search.Search.solution)
    found = search.Search(problem(2, 3), Limits(seconds=60), lambda *_: None, Event(), engine)
    run(found)
    assert found.incumbent.timeline is not None


def test_list_schedules_that_take_forever_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_scheduling, "list_schedule", forever)
    assert solve(problem(3, 5, memory={"capacity": 2}), LIMITS).timeline is not None


def test_published_schedules_without_a_search_keep_to_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "candidate", forever)
    monkeypatch.setattr(published_comparison, "candidate", forever)
    limits = Limits(seconds=0.5, workers=1)
    started = time.thread_time()  # all of it in a loop: a machine that stands still adds nothing
    found = published_comparison.all_tried(without_search(problem(2, 3), limits), ["gpipe", "1f1b"], limits)
    assert [(one.name, one.tried, one.fits) for one in found.candidates] == [
        ("1f1b", False, False),
        ("gpipe", False, False),
    ]
    assert time.thread_time() - started < 3
    assert [line for line in not_applicable.lines(found.candidates) if "1f1b, gpipe" in line]


def test_the_figure_under_noise_keeps_to_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    solution = solve(problem(2, 3), LIMITS)
    assert robustness.robustness(solution) is not None
    monkeypatch.setattr(robustness, "_robustness", forever)
    assert robustness.robustness(solution, seconds=0.1) is None


def test_kernels_are_compiled_by_another_process_which_no_one_waits_for_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(60)\n")
    (tmp_path / "quick_module.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    uncompiled = SimpleNamespace(signatures=[], stats=SimpleNamespace(cache_path=str(tmp_path)))
    slow, quick = (kernels.Kernels("one", uncompiled, module=f"{name}_module") for name in ("slow", "quick"))
    quick.begin()
    assert quick.wait(lambda: False)
    slow.begin()
    assert not slow.wait(lambda: True)
    other = kernels.Kernels("other", uncompiled, module="quick_module")
    assert not other.wait(lambda: True)
    compiler = slow._compiler
    assert compiler is not None
    assert kernels.compiling().startswith("one, ")
    # Local search does not run meanwhile, and a note says that another run may find more.
    monkeypatch.setattr(search, "kernels_for", lambda _: slow)
    engine = replace(ENGINE, construction=(), subsolvers=(LocalSearch(),))
    # Round trips decide, so that something is open.
    one = problem(3, 5, memory={"capacity": 2})
    begun = search.Search(one, Limits(seconds=0.5, workers=1), lambda _: None, Event(), engine)
    begun.offer_order(list_scheduling.sequential(one))
    begun.clock = SteppedClock(begun.limits, slow, monkeypatch)
    run(begun)
    assert kernels.STILL_COMPILING in begun.solution().notes
    assert "local search" not in dict(begun.solution().parts)
    # So is the end of a solve, whose value is what it is.
    begun = search.Search(problem(2, 3), Limits(seconds=86_400, workers=1), lambda _: None, Event(), ENGINE)
    begun.offer_order(HEURISTICS["1f1b"].order(begun.problem))
    monkeypatch.setattr(finish, "_PARAMS", replace(finish._PARAMS, table_share=0.0))
    # It does not wait for code that the answer does not need, however much time is left.
    monkeypatch.setattr(kernels.time, "sleep", lambda _: pytest.fail("it waits"))
    assert kernels.NOT_REFINED in finish.finished(begun).notes
    monkeypatch.undo()
    compiler.kill()
    compiler.wait()
    assert not kernels.compiling()
    assert begun.compiled(slow)
    assert other.wait(lambda: False)


_COMPILED = """
from solver.engine.compile_kernels import compile_kernels, compile_lists
from solver.engine.kernels import KERNELS, LIST_KERNELS, MODE_KERNELS
from solver.limits import Limits
from solver.solve import solve, without_search
from tests.support.makers import problem

compile_lists()
compile_kernels()
compile_kernels("modes")
functions = {*LIST_KERNELS.functions, *KERNELS.functions, *MODE_KERNELS.functions}
signatures = [list(one.signatures) for one in functions]
assert all(signatures)
for objective in ("makespan", "span"):
    for times in ({"forward": 1, "backward": 1, "weight": 1}, {"forward": 2, "backward": 4, "overlapped": 5}):
        one = problem(4, 6, memory={"capacity": 3}, objective=objective, times=times)
        solve(one, Limits(seconds=86_400, workers=1, deterministic=60))
assert [list(one.signatures) for one in functions] == signatures
"""


def test_no_solve_compiles_what_was_not_compiled_before() -> None:
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", _COMPILED], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_bound_that_takes_forever_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(BOUNDS["head and tail"]), "certify", forever)
    found = solve(problem(2, 3), LIMITS)
    assert found.status in (Status.OPTIMAL, Status.FEASIBLE)
    assert any("head and tail" in note for note in found.notes)


def test_no_bound_is_begun_after_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is under way has a moment; each one more would have another."""
    stop, begun = Event(), list[str]()

    def stopped(name: str) -> list[Certificate]:
        begun.append(name)
        stop.set()
        return []

    for bound in BOUNDS:
        if bound.name != "load":
            monkeypatch.setitem(vars(bound), "certify", lambda *_, name=bound.name: stopped(name))
    found = solve(problem(2, 3), LIMITS, stop=stop)
    assert len(begun) == 1
    assert found.interrupted and found.timeline is not None and found.certificate is not None
    assert found.certificate.kind == "load" and not found.notes


def test_all_kernels_have_a_call_that_compiles_them() -> None:
    found = [one for one in vars(kernels).values() if isinstance(one, kernels.Kernels)]
    assert [*kernels.ALL_KERNELS] == found
    assert {one.name for one in found} == {*compile_kernels.CALLS}
