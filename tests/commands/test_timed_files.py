"""Files written as far as the time lasts, by a clock of the test's own."""

from __future__ import annotations

import os
import signal
import time
from argparse import Namespace
from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Event

import pytest

from commands.main import main
from commands.options import search
from commands.options.search import limits_of
from commands.reports import timed_files as module
from commands.reports.timed_files import TimedFiles, timed_files
from commands.shared.catalogue import Exit
from heuristics.catalogue import HEURISTICS
from pipesched.deadline import Deadline, asking
from pipesched.errors import BadInput
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from solver.limits import Limits
from tests.support.makers import problem

ONE, OTHER = Path("one"), Path("other")


def small() -> Timeline:
    one = problem(2, 3)
    return simulate(one, HEURISTICS["gpipe"].order(one))


def written(of: list[str], name: str) -> Callable[[], list[Path]]:
    def work() -> list[Path]:
        of.append(name)
        return [Path(name)]

    return work


def test_a_time_limit_counts_from_the_start_of_the_program() -> None:
    """What the imports took is no time to search, down to half of the limit."""
    given = {"time_limit": 10.0, "workers": 1, "seed": 0, "gap": 0}
    assert limits_of(Namespace(**given, starting=1.5)).seconds == 8.5
    assert limits_of(Namespace(**given, starting=9.0)).seconds == 5
    assert limits_of(Namespace(**given)).seconds == 10


def test_the_start_of_the_program_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = list[Limits]()

    def found(_problem: object, limits: Limits, *_: object) -> None:
        asked.append(limits)
        raise BadInput("enough")

    monkeypatch.setattr(search, "solve", found)
    file = tmp_path / "one.yaml"
    file.write_text("devices: 2\nmicrobatches: 2\ntimes: {forward: 1, backward: 2}\n", encoding="utf-8")
    words = ["solve", str(file), "--time-limit", "1000"]
    assert main(words, began=time.monotonic() - 300) == Exit.BAD_INPUT
    assert main(words) == Exit.BAD_INPUT
    assert asked[0].seconds <= 700 < 900 < asked[1].seconds


def test_after_the_deadline_no_step_is_begun(capsys: pytest.CaptureFixture[str]) -> None:
    begun = list[str]()
    now = [0.0]
    files = TimedFiles(Deadline.after(5, Event(), lambda: now[0]))
    files.may("one", written(begun, "one"))
    now[0] = 5
    files.may("other", written(begun, "other"))
    files.must(written(begun, "schedule"))
    files.note_left_out()
    assert begun == ["one", "schedule"] and files.paths == [ONE, Path("schedule")]
    assert "no time to write other;" in capsys.readouterr().err
    assert not files.interrupted


def test_no_file_is_begun_that_would_not_be_finished() -> None:
    """Of a million passes 5 us each are 5 s; what takes less is written after it."""
    begun = list[str]()
    files = TimedFiles(Deadline.after(4, Event(), lambda: 0.0), 10**6)
    files.may("long", written(begun, "long"), 5)
    files.may("short", written(begun, "short"), 3)
    assert begun == ["short"] and files.paths == [Path("short")]


def test_ctrl_c_ends_what_is_written_and_leaves_out_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW_PASSES", 0)
    begun, args = list[str](), Namespace(time_limit=1000.0, began=time.monotonic())

    def endless() -> list[Path]:
        begun.append("endless")
        os.kill(os.getpid(), signal.SIGINT)
        for _ in asking(count()):
            time.sleep(0.01)
        raise AssertionError

    with timed_files(args, small(), interrupted=False) as files:
        files.must(written(begun, "schedule"))
        files.may("endless", endless)
        files.may("other", written(begun, "other"))
    assert begun == ["schedule", "endless"] and files.paths == [Path("schedule")]
    assert files.interrupted


def test_pictures_of_few_passes_are_written_whatever_the_time() -> None:
    begun, args = list[str](), Namespace(time_limit=1.0, began=time.monotonic() - 100)
    with timed_files(args, small(), interrupted=True) as files:
        files.may("one", written(begun, "one"))
    assert files.paths == [ONE] and not files.interrupted


def test_a_long_search_that_was_interrupted_leaves_them_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW_PASSES", 0)
    monkeypatch.setattr(module, "_AFTER_STOP", 0.0)
    args = Namespace(time_limit=1000.0, began=time.monotonic())
    with timed_files(args, small(), interrupted=True) as files:
        files.may("one", written([], "one"))
    assert files.paths == []
