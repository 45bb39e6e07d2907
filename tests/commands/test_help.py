"""Help: commands in groups, each with who needs it and an example that can be typed; and that of go.py."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

import go
from commands.main import main
from commands.shared.catalogue import COMMANDS, Group
from commands.shared.parser import parser
from tests.support.in_turn import in_turn

ROOT = Path(__file__).resolve().parents[2]


@in_turn("name", COMMANDS.names())
def test_a_command_has_a_group_and_an_example_that_can_be_typed(name: str) -> None:
    command = COMMANDS[name]
    words = shlex.split(command.example)
    assert words[0] == name
    assert parser(words).parse_args(words).run is command.run
    assert all((ROOT / word).exists() for word in words if word.startswith("examples/"))
    assert command.group is not Group.OTHER


def test_the_help_lists_commands_by_what_they_are_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    blocks = {block.partition(":")[0]: block for block in said.split("\n\n")}
    assert "\n  solve       for times per stage: " in blocks["find the best schedule"]
    assert "\n  plan        for a model, or times per layer: " in blocks["find the best schedule"]
    assert "\n  sweep       what if: " in blocks["ask what if"]
    assert all(said.count(f"\n  {name} ") == 1 for name in COMMANDS.names())


def test_the_help_of_a_command_says_who_needs_it_and_ends_with_its_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sweep", "--help"])
    said = capsys.readouterr().out
    assert "what if: any field of a problem or plan" in said
    assert said.rstrip().endswith("example: pipesched sweep examples/gpt-1.5b-pp8.yaml --set microbatches=8..32:8")


def test_the_options_of_a_command_are_grouped(capsys: pytest.CaptureFixture[str]) -> None:
    groups = {"what is asked": "--for", "limits": "--time-limit", "output": "--json"}
    for name in ("solve", "plan"):
        with pytest.raises(SystemExit):
            main([name, "--help"])
        blocks = {block.partition(":")[0]: block for block in capsys.readouterr().out.split("\n\n")}
        assert list(blocks)[-4:-1] == list(groups) and "options" not in blocks
        for title, option in groups.items():
            assert [other for other, block in blocks.items() if f"\n  {option}" in block] == [title]
    with pytest.raises(SystemExit):
        main(["simulate", "--help"])
    assert "limits:" not in capsys.readouterr().out, "its seed is that of the noise"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["solve", "examples/start.yaml", "--time-limt", "3"], "; did you mean '--time-limit'?"),
        (["solve", "--timelimit=3", "examples/start.yaml"], "; did you mean '--time-limit'?"),
        (["solve", "examples/start.yaml", "--schedule", "gpipe"], "--schedule (see"),
        (["plan", "examples/start.yaml", "--settigs", "all"], "; did you mean '--settings'?"),
        (["plan", "examples/start.yaml", "--schedule", "gpipe"], "; `schedule` is a key of the file"),
        (["new", "--from", "x", "--num-microbatches", "8"], "; did you mean '--microbatches'?"),
        (["solve", "examples/start.yaml", "--timeout", "3"], "; did you mean '--time-limit'?"),
        (["layouts", "x.json", "--tp", "2"], "; did you mean '--tensor'?"),
    ],
)
def test_a_misspelt_option_is_refused_with_the_nearest_one(
    words: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    said = capsys.readouterr().err
    assert left.value.code == 2 and len(said.splitlines()) == 1
    assert said.startswith("pipesched: unknown option --") and f"(see `pipesched {words[0]} --help`)" in said
    assert meant in said


def test_go_names_every_command() -> None:
    words = (go.__doc__ or "").replace(",", " ").split()
    assert {*COMMANDS.names()} <= {*words}


@pytest.mark.parametrize(
    ("arguments", "everything"),
    [
        ([], True),
        (["-q", "-k", "tests"], True),
        (["tests/web", "-q"], False),
        (["-x", "tests/commands/test_help.py::test_go_names_every_command"], False),
    ],
)
def test_go_tests_the_paths_that_are_named(
    arguments: list[str], everything: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, with_variables = list[str](), dict[str, str]()

    def become(*words: str, **variables: str) -> int:
        started.extend(words)
        with_variables.update(variables)
        return 0

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(go, "install", lambda *_: None)
    monkeypatch.setattr(go, "become", become)
    monkeypatch.setattr(sys, "argv", ["go.py", "test", *arguments])
    assert go.main() == 0
    assert (str(ROOT / "tests") in started) is everything
    assert started[-len(arguments) :] == arguments or not arguments
    assert with_variables == {"PYTHONDONTWRITEBYTECODE": ""}, "each process that tests start compiles what it imports"


@pytest.mark.parametrize("writes", (True, False))
def test_pip_compiles_what_python_may_not(writes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is compiled when first imported, or else at the installation: never in every process."""
    asked: list[list[object]] = []
    monkeypatch.setattr(go, "HOME", tmp_path)
    monkeypatch.setattr(go, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(sys, "dont_write_bytecode", not writes)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: asked.append(command) or Namespace(returncode=0))
    go.install("dev")
    assert [("--no-compile" in command) for command in asked] == [writes]


def test_a_word_too_many_is_said_with_what_the_command_takes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["check", "a.json", "b.json"])
    said = "pipesched: found b.json too; allowed: pipesched check SCHEDULE (see `pipesched check --help`)\n"
    assert (left.value.code, capsys.readouterr().err) == (2, said)


def test_who_reads_the_help_of_go_may_stop() -> None:
    read, write = os.pipe()
    os.close(read)  # before anything is written, however fast the process is
    with os.fdopen(write) as pipe:
        done = subprocess.run(
            [sys.executable, ROOT / "go.py", "--help"], stdout=pipe, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (141, b"")


PROGRAM = """
import sys

class Loaded:
    def __del__(self):
        print("taken apart")

loaded, sys.argv = Loaded(), ["pipesched", "schedules"]
if OTHERS:
    import atexit
    atexit.register(print, "last")
from pipesched.__main__ import main
main()
"""


@pytest.mark.parametrize(("others", "end"), [(False, ""), (True, "last\ntaken apart\n")])
def test_a_command_ends_at_once_unless_others_have_work_at_the_end(others: bool, end: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"OTHERS = {others}\n{PROGRAM}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "zb-h1" in done.stdout and done.stdout.endswith(end)
    assert ("taken apart" in done.stdout) == others
