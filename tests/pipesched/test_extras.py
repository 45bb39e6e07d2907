"""What is said to be installed can be: every extra that a message names is one of the package's."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_extras_that_messages_name_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    folders = ("pipesched", "heuristics", "formulations", "solver", "runtime", "plots", "targets", "web", "commands")
    named = {
        name
        for folder in folders
        for file in (ROOT / folder).rglob("*.py")
        for name in re.findall(
            r"to_install\('pipesched\[(\w+)\]'\)", file.read_text(encoding="utf-8").replace('"', "'")
        )
    }
    assert {"web", "torch", "parquet", "cluster"} <= named <= extras.keys()
