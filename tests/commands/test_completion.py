"""`completion`, in the shells that are installed: commands, options, names and files."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from commands.completion import SHELLS
from commands.main import main

# What is typed, and what the shell must then offer; a file or folder of the working directory among them.
TYPED = [
    (["so"], "solve"),
    (["simulate", "--schedule", "kimi"], "kimi-k2"),
    (["export", "x.json", "--format", "torch-csv-"], "torch-csv-comms"),
    (["compare", "--no-op"], "--no-optimal"),
    (["solve", "mine-"], "mine-own.yaml"),
    (["solve", "x.yaml", "-o", "fol"], "folder"),
    (["solve", "--objective", "ma"], "makespan"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory, with a script a shell."""
    made = tmp_path_factory.mktemp("work")
    (made / "mine-own.yaml").touch()
    (made / "folder").mkdir()
    return made


def script(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    path = folder / f"script.{shell}"
    path.write_text(capsys.readouterr().out)
    return path


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_bash(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"source {script('bash', folder, capsys)}"]
    for words, _ in TYPED:
        line = " ".join(["pipesched", *words])
        lines += [
            f"COMP_WORDS=({line}) COMP_CWORD={len(words)} COMP_LINE='{line}' COMP_POINT={len(line)} COMPREPLY=()",
            '$(complete -p pipesched | sed "s/.*-F \\([^ ]*\\).*/\\1/"); echo "${COMPREPLY[@]}"',
        ]
    offered = run(folder, "bash", "--norc", "-c", "\n".join(lines)).splitlines()
    assert [wanted in got.split() for (_, wanted), got in zip(TYPED, offered, strict=True)] == [True] * len(TYPED)


def test_fish(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"source {script('fish', folder, capsys)}"]
    lines += [f"complete -C 'pipesched {' '.join(words)}'; echo =" for words, _ in TYPED]
    offered = run(folder, "fish", "--no-config", "-c", "\n".join(lines)).split("=\n")[:-1]
    found = [[line.split("\t")[0].rstrip("/") for line in got.splitlines()] for got in offered]
    assert [wanted in got for (_, wanted), got in zip(TYPED, found, strict=True)] == [True] * len(TYPED)


def test_zsh(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Zsh completes in its line editor alone: what is typed on a terminal, with the tabulator, becomes the whole word."""
    script("zsh", folder, capsys).rename(folder / "_pipesched")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "PS1": "> ", "HOME": str(folder)})
    try:
        said(terminal, "ready", f"fpath=({folder} $fpath); autoload -U compinit && compinit -u -D; echo rea''dy\n")
        for words, wanted in TYPED:
            typed = " ".join(["pipesched", *words])
            whole = typed.removesuffix(words[-1]) + wanted
            said(terminal, whole, f"{typed}\t")
            os.write(terminal, b"\x15")  # clears the line
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(terminal)


def said(terminal: int, wanted: str, typed: str) -> None:
    """Type, and wait until the terminal shows what is wanted."""
    os.write(terminal, typed.encode())
    text, until = "", time.monotonic() + 60
    while wanted not in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\b]", "", text):
        assert time.monotonic() < until, f"{typed!r}: the terminal shows {text!r}"
        if select.select([terminal], [], [], 0.2)[0]:
            text += os.read(terminal, 4096).decode(errors="replace")


def test_every_shell_has_a_test() -> None:
    assert {f"test_{shell}" for shell in SHELLS} <= {*globals()}
