"""`--watch`: an answer after each change, mistakes said without ending, a search stopped by a change, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from commands.main import main
from commands.shared import watch as module
from commands.shared.catalogue import Exit
from commands.shared.watch import stop_event, watch
from pipesched.errors import BadInput

ROOT = Path(__file__).resolve().parents[2]
GOOD = "devices: 2\nmicrobatches: 2\ntimes: {forward: 1, backward: 2}\n"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERVAL", 0.01)


def watched(path: Path, *answers: Callable[[Namespace], int]) -> int:
    """`watch` over one file, answering in turn; it ends with the last, which the user interrupts."""
    args, waiting = Namespace(problem=str(path), json=False), list(answers)
    return watch(args, lambda: waiting.pop(0)(args) if waiting else Exit.INTERRUPTED)


def test_plan_files_are_watched_as_problem_files_are(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"  # missing for now, as while an editor replaces it
    assert module._files(Namespace(plan=str(path))) == [path] == module._files(Namespace(problem=str(path)))


def test_a_change_brings_another_answer_and_an_interrupt_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("one")
    seen: list[str] = []

    def answer(args: Namespace) -> int:
        seen.append(path.read_text())
        path.with_suffix(".new").write_text("two")
        path.with_suffix(".new").replace(path)  # as editors save
        return Exit.BAD_INPUT

    assert watched(path, answer, lambda _: seen.append(path.read_text()) or Exit.INTERRUPTED) == Exit.INTERRUPTED
    assert seen == ["one", "two"]
    told = capsys.readouterr()
    assert "changed" in told.out
    assert f"watching {path}" in told.err


def test_a_change_stops_the_search_under_way_and_is_no_interrupt(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("one")

    def search(args: Namespace) -> int:
        assert not stop_event(args).is_set()
        path.write_text("longer")
        assert stop_event(args).wait(30)
        return Exit.INTERRUPTED

    answers: list[int] = []
    assert watched(path, search, lambda _: answers.append(1) or Exit.INTERRUPTED) == Exit.INTERRUPTED
    assert answers == [1]


@pytest.mark.parametrize("command", ["pair", "frontier"])
def test_every_search_of_a_file_is_watched(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file changes while the first search is under way, which ends it; the second one is interrupted."""
    path = tmp_path / "a.yaml"
    path.write_text(GOOD)
    stops: list[Event] = []

    def searched(*args: object, **more: object) -> object:
        stops.extend(one for one in (*args, *more.values()) if isinstance(one, Event))
        if len(stops) == 1:
            path.write_text(GOOD + "name: another\n")
            assert stops[0].wait(30)
        raise KeyboardInterrupt if len(stops) > 1 else BadInput("ended")

    name = {"pair": "commands.pair.best_pair", "frontier": "commands.frontier.frontier"}[command]
    monkeypatch.setattr(name, searched)
    assert main([command, str(path), "--watch"]) == Exit.INTERRUPTED
    assert len(stops) == 2
    assert "changed" in capsys.readouterr().out


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_mistakes_are_said_and_mended_until_ctrl_c(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(GOOD.replace("devices: 2", "devices: two"))
    command = [sys.executable, "-u", "-m", "pipesched", "simulate", str(path), "--watch"]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    lines = iter(process.stdout)
    assert "devices: found 'two'" in next(line for line in lines if "found" in line)
    assert "watching" in next(lines)
    path.write_text(GOOD)
    assert "│ makespan" in next(line for line in lines if "makespan" in line)
    next(line for line in lines if "watching" in line)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == Exit.INTERRUPTED
    process.stdout.close()
