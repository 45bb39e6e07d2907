"""The file of a benchmark's results, keyed by row, written whole after every row so that a run can be resumed."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.reporting.record import Record, measured, record_of, settings_of
from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole
from pipesched.problem.problem import Problem
from solver.engine.engine import ENGINE
from solver.engine.search import Engine
from solver.limits import Limits


class Store:
    """Records by key in a JSON file; `machine` says where they were made."""

    def __init__(self, path: Path, machine: str) -> None:
        self.path, self.machine = path, machine
        self.records: dict[str, Record] = {}

    def load(self) -> None:
        """Take what the file holds; nothing where there is none. `BadInput` for a file that is not one of results."""
        if not self.path.exists():
            return
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
            self.records = {key: record_of(entry) for key, entry in document["rows"].items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:
            raise BadInput(
                f"{self.path}: found something else than a benchmark's results ({error}); remove it, or name another "
                "file with --results"
            ) from None

    def under(self, settings: dict[str, float]) -> dict[str, Record]:
        """Records measured with these settings; a table never mixes them."""
        return {key: found for key, found in self.records.items() if found.settings == settings}

    def has(self, key: str, settings: dict[str, float]) -> bool:
        """True if a good result with these settings is there."""
        found = self.records.get(key)
        return found is not None and not found.error and found.settings == settings

    def measure(
        self, key: str, problem: Problem, limits: Limits, engine: Engine = ENGINE, *, resume: bool = True
    ) -> bool:
        """Solve and keep; whether that was not there yet with these limits, where a run is resumed."""
        if resume and self.has(key, settings_of(limits)):
            return False
        self.add(key, measured(problem, limits, engine))
        return True

    def add(self, key: str, record: Record) -> None:
        """Keep a result, on disk too."""
        self.records[key] = record
        rows = {name: found.document() for name, found in self.records.items()}
        write_whole(self.path, json.dumps({"machine": self.machine, "rows": rows}, indent=1) + "\n")
