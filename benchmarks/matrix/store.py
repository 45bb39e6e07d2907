"""Outcomes as lines of a file: what is there already is not run again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.matrix.outcome import Outcome


class Lines:
    """A file of outcomes, one a line, each written when it is there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def keep(self, outcome: Outcome) -> None:
        """Add one."""
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(outcome.as_json()) + "\n")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """All that are whole; the last line of a run that was ended may be cut."""
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue

    def known(self) -> set[tuple[str, tuple[str, ...], int]]:
        """The kind, names and seed of each."""
        return {(one["kind"], tuple(one["names"]), one["seed"]) for one in self}
