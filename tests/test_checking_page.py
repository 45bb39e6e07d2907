"""docs/checking.md shows what its commands print: they are run, one after the other, in a folder of their own."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from commands.main import main

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "checking.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```\n(\$ .*?)```", PAGE, re.DOTALL)


@pytest.mark.usefixtures("cells_in_turn")
@pytest.mark.parametrize("block", SHOWN, ids=["a schedule", "a plan", "a sweep"])
def test_the_page_shows_what_its_commands_print(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    file, text = re.findall(r"`(\w+\.yaml)`,\n\n```yaml\n(.*?)```", PAGE, re.DOTALL)[0]
    (tmp_path / file).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    lines = block.splitlines()
    commands = [line.removeprefix("$ pipesched ") for line in lines if line.startswith("$")]
    for line in commands:
        words = shlex.split(line)
        silent = words[-2:] == [">", "/dev/null"]
        capsys.readouterr()
        assert main(words[:-2] if silent else words) == 0
        if not silent:
            assert capsys.readouterr().out.splitlines() == lines[len(commands) :]
    assert not commands[-1].endswith("/dev/null")
