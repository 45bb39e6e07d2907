"""The cells of a store, read from its file alone, for a check that writes nothing and reads no other file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.problem import Problem
from pipesched.sweeps.cells import content_key, problem_of
from pipesched.sweeps.outcome import Outcome, outcome_from
from pipesched.sweeps.store import FORMAT, is_ours, key_if_solved

_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class StoredCell:
    """A cell of a sweep in a store, and its outcome (None: not solved yet, or refused).

    `sweep` is the name of the sweep, `number` that of the cell in it, from 0; `at` has its values by axis name. `key`
    is its `Cell.key`, None where its values do not go together, for the reason in `refused`, which is empty for others.
    `document` is the cell's document as JSON text; None if the cell is refused or an older version wrote it.
    """

    sweep: str
    number: int
    at: Mapping[str, Any]
    key: str | None
    refused: str
    document: str | None
    outcome: Outcome | None

    def problem(self) -> Problem | PlanProblem | None:
        """Return the problem solved; None if there is no document.

        `BadInput` if the document is no valid problem, or not that of the key.
        """
        if self.document is None:
            return None
        problem = problem_of(read_json(self.document, "cell"), self.sweep)  # type: ignore[arg-type]
        if content_key(problem) != self.key:
            raise BadInput("the problem in the store is not the one that was solved")
        return problem


def is_store(path: str | Path) -> bool:
    """Return True if a file is an SQLite database, False for any other file and one that cannot be read.

    False too for a pipe, of which nothing is read.
    """
    if not Path(path).is_file():
        return False
    try:
        with Path(path).open("rb") as stream:
            return stream.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def stored_cells(path: str | Path) -> list[StoredCell]:
    """Return all cells of all sweeps in a store, by sweep (the oldest first) and number; nothing is written to it.

    `BadInput` if the file is no store, or of a later version.
    """
    # With this, SQLite makes no files beside it; but what a sweep under way has in its log is then not seen.
    unlogged = "" if Path(f"{path}-wal").exists() else "&immutable=1"
    uri = f"{Path(path).absolute().as_uri()}?mode=ro{unlogged}"
    try:
        database = sqlite3.connect(uri, uri=True)
        try:
            return _cells(database, path)
        finally:
            database.close()
    except (sqlite3.Error, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path}: found no store of sweeps that can be read: {str(error)[:100]}") from None


def _cells(database: sqlite3.Connection, path: str | Path) -> list[StoredCell]:
    version = is_ours(database, path)
    if not 1 <= version <= FORMAT:
        raise BadInput(f"{path}: found no sweep in it")
    column = "document" if version > 1 else "NULL"
    known = {
        key: outcome_from(json.loads(text), schedule)
        for key, text, schedule in database.execute("SELECT key, document, schedule FROM results")
    }
    rows = database.execute(
        f"SELECT sweeps.name, number, at, cells.key, refused, {column} FROM cells "
        "JOIN sweeps ON sweeps.id = cells.sweep ORDER BY cells.sweep, number"
    )
    found = []
    for name, number, at, stored_key, refused, stored_document in rows:
        outcome, key, document = known.get(stored_key), stored_key, stored_document
        if version == 2 and document is not None:  # as `Store` replaces keys of this version
            own = None if outcome is None else key_if_solved(document, name, outcome.schedule)
            key, document = own or key, None if own is None else document
        found.append(StoredCell(name, number, json.loads(at), key, refused or "", document, outcome))
    return found
