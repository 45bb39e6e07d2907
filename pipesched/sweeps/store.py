"""The store of a sweep: one SQLite file with every solved cell, consistent even if the writing program is killed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import simplejson

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json
from pipesched.sweeps.cells import Cell, Sweep, content_key, problem_of
from pipesched.sweeps.outcome import Outcome, outcome_from
from pipesched.sweeps.packed import unpack
from pipesched.version import VERSION

FORMAT = 3
_APPLICATION = 0x70735377  # written into the file, so that a database of another program is told from ours
_BUSY_SECONDS = 60
# Results are found by the content of what was solved: sweeps that share cells share their results. Numbers are exact,
# fractions in the file's units; `solves` counts how often a search of it came to its end.
_TABLES = """
CREATE TABLE results (
    key TEXT PRIMARY KEY, status TEXT NOT NULL, value TEXT, lower_bound TEXT, finished INTEGER NOT NULL,
    seconds REAL NOT NULL, wall_seconds REAL NOT NULL, solves INTEGER NOT NULL, version TEXT NOT NULL,
    solved_at TEXT NOT NULL, document TEXT NOT NULL, schedule BLOB
);
CREATE TABLE sweeps (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL, file TEXT NOT NULL, axes TEXT NOT NULL,
    same_model INTEGER NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE cells (
    sweep INTEGER NOT NULL REFERENCES sweeps (id), number INTEGER NOT NULL, at TEXT NOT NULL, key TEXT, refused TEXT,
    document TEXT, PRIMARY KEY (sweep, number)
);
"""
# A cell's document is what `check` finds its problem in. Keys before version 3 were of names in the code.
_ADD_DOCUMENTS = "ALTER TABLE cells ADD COLUMN document TEXT"


class Store:
    """The store: outcomes of cells by the key of their content. Every `keep` is on disk when it returns.

    The constructor makes the file if it is missing, and brings one of an older version up to date. `BadInput` if that
    fails, or the file is another database or of a later version.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self._open()
        except sqlite3.Error as error:
            raise BadInput(f"{path}: found no store of sweeps that can be read and written: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the store, so that everything is in the one file, without SQLite's two auxiliary files."""
        self._database.close()

    def enter(self, sweep: Sweep) -> int:
        """Add a sweep and its cells unless it is there already; returns its number (id) in the store.

        If it is there under another key, because an older version wrote it, it is found by its name, file and axes and
        gets the new key. The keys and documents of cells that are there are replaced. `BadInput` if the file cannot be
        written.
        """
        axes = [axis.document() for axis in sweep.axes.axes]
        asked = sweep.name, _text(sweep.document), _text(axes), sweep.axes.same_model
        with self._changing() as database:
            database.execute(
                "UPDATE OR IGNORE sweeps SET key = ? WHERE id = (SELECT max(id) FROM sweeps "
                "WHERE name = ? AND file = ? AND axes = ? AND same_model = ?)",
                (sweep.key, *asked),
            )
            database.execute(
                "INSERT OR IGNORE INTO sweeps (key, name, file, axes, same_model, created_at) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (sweep.key, *asked, _now()),
            )
            number: int = database.execute("SELECT id FROM sweeps WHERE key = ?", (sweep.key,)).fetchone()[0]
            database.executemany(
                "INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (sweep, number) DO UPDATE SET key = excluded.key, refused = excluded.refused, "
                "document = excluded.document",
                ((number, *_cell_row(cell)) for cell in sweep.cells),
            )
        return number

    def known(self, keys: Iterable[str]) -> dict[str, Outcome]:
        """Return by key the stored outcomes of cells with these `Cell.key`s; those without one are left out."""
        found = {}
        for key in dict.fromkeys(keys):
            outcome = self.get(key)
            if outcome is not None:
                found[key] = outcome
        return found

    def get(self, key: str) -> Outcome | None:
        """Return the outcome of the cell with this `Cell.key`; None if none is stored."""
        row = self._database.execute("SELECT document, schedule FROM results WHERE key = ?", (key,)).fetchone()
        return None if row is None else outcome_from(json.loads(row[0]), row[1])

    def keep(self, key: str, outcome: Outcome, solved: bool = True) -> Outcome:
        """Merge an outcome into what is known of the cell with this `Cell.key`; returns the merged outcome.

        `solved` is False for an outcome that follows from another cell, without a search of this one; it is not counted
        in `solves`, nor is one that is not finished. `BadInput` if the file cannot be written.
        """
        with self._changing() as database:
            before = self.get(key)
            now = outcome if before is None else before.merged(outcome)
            count = int(solved and outcome.finished)
            database.execute(
                "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "status = excluded.status, value = excluded.value, lower_bound = excluded.lower_bound, "
                "finished = excluded.finished, seconds = excluded.seconds, wall_seconds = excluded.wall_seconds, "
                "solves = solves + excluded.solves, version = excluded.version, solved_at = excluded.solved_at, "
                "document = excluded.document, schedule = excluded.schedule",
                (*_row(key, now), count, VERSION, _now(), _text(now.document()), now.schedule),
            )
        return now

    def solves(self, key: str) -> int:
        """Return the number of completed searches of the cell with this `Cell.key`; 0 if none is stored."""
        row = self._database.execute("SELECT solves FROM results WHERE key = ?", (key,)).fetchone()
        return 0 if row is None else int(row[0])

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """Context of one transaction, which is on disk as a whole or not at all. Another process may be writing too.

        `BadInput` if the file cannot be written.
        """
        database = self._database
        try:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                if database.in_transaction:  # SQLite ends it itself where the disk is full
                    database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")
        except sqlite3.Error as error:
            raise BadInput(f"{self.path}: cannot be written: {error}") from None

    def _open(self) -> None:
        if self.path.exists() and not self.path.is_file():
            raise BadInput(f"{self.path}: found no file; allowed: a store of sweeps, made if it is missing")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"{self.path}: cannot be written: {error.strerror}") from None
        self._database = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            self._begin(self._database)
        except BaseException:
            self._database.close()
            raise

    def _begin(self, database: sqlite3.Connection) -> None:
        """Check that the file is ours before anything is written, and make the tables of a new file."""
        version = is_ours(database, self.path)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        if version < FORMAT:
            with self._changing():
                version = database.execute("PRAGMA user_version").fetchone()[0]
                if version < FORMAT:
                    _migrate(database, version)
                    database.execute(f"PRAGMA application_id = {_APPLICATION}")
                    database.execute(f"PRAGMA user_version = {FORMAT}")


def is_ours(database: sqlite3.Connection, path: str | Path) -> int:
    """Return the version of a store, 0 for an empty file; `BadInput` for other databases or a later version."""
    owner, version = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and owner != _APPLICATION:
        raise BadInput(f"{path}: found a database of another program; allowed: a store of sweeps")
    if version > FORMAT:
        raise BadInput(f"{path}: found version {version}; this version of the tool reads up to {FORMAT}")
    return int(version)


def _migrate(database: sqlite3.Connection, version: int) -> None:
    """Make the tables of an empty file (version 0), or change those of an older version to today's.

    Within a transaction of the caller, who writes the new version.
    """
    if version == 0:
        for statement in filter(str.strip, _TABLES.split(";")):
            database.execute(statement)
    elif version == 1:
        database.execute(_ADD_DOCUMENTS)
    elif version == 2:
        _write_keys_of_documents(database)


def _write_keys_of_documents(database: sqlite3.Connection) -> None:
    """Replace keys of version 2 by those of the problems in the cells' documents, where that problem was solved.

    Other cells lose their document, so that `check` says that an older version wrote them.
    """
    cells = database.execute(
        "SELECT DISTINCT cells.key, cells.document, sweeps.name, results.schedule FROM cells "
        "JOIN sweeps ON sweeps.id = cells.sweep LEFT JOIN results ON results.key = cells.key "
        "WHERE cells.document IS NOT NULL"
    )
    for before, document, name, schedule in cells.fetchall():
        key = key_if_solved(document, name, schedule)
        if key is None:
            database.execute("UPDATE cells SET document = NULL WHERE key = ?", (before,))
        else:
            database.execute("UPDATE cells SET key = ? WHERE key = ?", (key, before))
            database.execute("UPDATE OR IGNORE results SET key = ? WHERE key = ?", (key, before))


def key_if_solved(document: str, name: str, schedule: bytes | None) -> str | None:
    """Return the key of a cell's document in JSON if its packed schedule is one of exactly this problem, else None.

    `name` is the sweep's. For the version of this program that wrote it, the document may have meant another problem
    than now, such as durations by other formulas; a schedule has its problem in plain numbers. None for plans too, and
    without a schedule.
    """
    if schedule is None:
        return None
    try:
        key = content_key(problem_of(read_json(document, "cell"), name))  # type: ignore[arg-type]
        return key if content_key(unpack(schedule).timeline.problem) == key else None
    except (BadInput, KeyError, TypeError, ValueError):
        return None


def _cell_row(cell: Cell) -> tuple[object, ...]:
    if cell.refused:
        return cell.number, _text(cell.place), None, cell.refused, None
    return cell.number, _text(cell.place), cell.key, None, _text(cell.document)


def _row(key: str, known: Outcome) -> tuple[object, ...]:
    numbers = (None if number is None else str(number) for number in (known.value, known.lower_bound))
    return key, known.status.value, *numbers, int(known.finished), known.effort.seconds, known.wall_seconds


def _text(document: Mapping[str, Any] | list[Any]) -> str:
    return simplejson.dumps(document, use_decimal=True, default=str)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
