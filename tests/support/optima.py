"""Optima by every order, stored in `optima.json`, so that a test run need not try all orders of all problems again.

    python -m tests.support.optima                                    # tries them and writes the table
    python -m tests.support.optima tests/solver/tasks/test_pair.py    # adds those of some tests

Tests alone read the table: attacks of `benchmarks/` try every order. What is not in it is computed, and so is a share of
what is, another one every day, which has to be equal. PIPESCHED_OPTIMA_SEED draws the share of another day again.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from fractions import Fraction
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from pipesched.files.atomic_write import write_whole
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.blocks import Blocks
from pipesched.problem.kv_cache import KvCache
from pipesched.problem.objective import Objective
from pipesched.problem.problem import Problem

TABLE = Path(__file__).with_name("optima.json")
SEED = os.environ.get("PIPESCHED_OPTIMA_SEED") or datetime.now(UTC).strftime("%Y%m%d")
# Set while the table is written: "all" for a new one, "more" to add to it.
RECORD = "PIPESCHED_OPTIMA_RECORD"
# One of so many that are stored is computed again.
SHARE = 20
# Tests that compare with optima, by what they import.
_USES = re.compile(
    r"brute_force|exhaustive|exact_optimum|piece_problems|relaxed_cases|support\.drawers|benchmarks\.(forged_evidence|proofs\.(arguments|attack|"
    r"memory_options|plan_attack|spans))"
)

# The fields of a problem that are values of a feature; the keys of the table have the fields of these, by names and in
# an order of their own.
_FEATURES = ("units", "resources", "walks", "chain_arcs", "parameters")
_STORED_NAMES = {
    "time": "time_unit", "memory": "memory_unit", "streams": "stream_names", "hosts": "host_pools",
    "scale": "microbatch_scale", "shares": "chain_shares", "arcs": "stage_arcs", "pieces": "sequence_chunks",
    "most": "most_gathers", "window": "gather_window",
}  # fmt: skip
_NAMES = (
    "placement", "microbatches", "stages", "pools", "objective", "time_unit", "tick", "memory_unit", "resolution",
    "links", "transfer_stream", "stream_names", "microbatch_scale", "host_pools", "shared_streams", "queues",
    "chain_shares", "stage_arcs", "sequence_chunks", "modules", "holders", "most_gathers", "gather_window",
)  # fmt: skip
# Values of a stage that stored keys have as fields of the stage, by these names.
_STORED_PARTS: dict[type, tuple[str, ...]] = {Blocks: ("overlapped", "block_saves"), KvCache: ("lent", "collected")}
# Fields of tuples that are newer than the stored keys: they count where they are not left at their default.
_LATER_FIELDS = ("gathers", "each_microbatch", "each_pass", "receives", "also", "of_all", "to")

Asked = ParamSpec("Asked")
Found = TypeVar("Found")


class Optima:
    """The table of stored optima; `record` has what was computed in this run, None where the table is only read."""

    def __init__(self) -> None:
        self.read = False
        self.stored: dict[str, Any] = {}
        self.record: dict[str, Any] | None = None
        self._inside = False

    def use(self, record: str | None) -> None:
        """Read the table from now on; with "more" also record what it lacks, with "all" begin with an empty one and
        record all."""
        self.record = None if record is None else {}
        self.stored = {} if record == "all" or not TABLE.exists() else json.loads(TABLE.read_text(encoding="utf-8"))
        self.read = record is None

    @contextmanager
    def every_order(self) -> Iterator[None]:
        """Context in which every optimum is computed and none looked up, for problems that no table can have."""
        inside, self._inside = self._inside, True
        try:
            yield
        finally:
            self._inside = inside

    def find(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the value of a key, as JSON: the stored one, or the computed one.

        On the day that draws the key both are found, and must be equal. A warning names what is not stored.
        """
        if self._inside or not (self.read or self.record is not None):
            return compute()
        known = self.stored.get(key, MISSING)
        if known is not MISSING and not _drawn(key):
            return known
        with self.every_order():  # what an optimum is made of is not kept by itself
            found = compute()
        if known is MISSING and self.record is not None:
            self.record[key] = found
        elif known is MISSING:
            file = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
            warnings.warn(f"an optimum is not stored: python -m tests.support.optima {file}", stacklevel=3)
        else:
            assert known == found, (
                f"PIPESCHED_OPTIMA_SEED={SEED}: {key} is stored as {known}, every order gives {found}"
            )
        return found


OPTIMA = Optima()


def stored(
    write: Callable[[Found], Any], parse: Callable[[Any], Found], error: type[Exception]
) -> Callable[[Callable[Asked, Found]], Callable[Asked, Found]]:
    """Return a decorator for a search over every order, whose results are stored.

    `write` converts a result to JSON and `parse` back; an `error` of this class is stored and raised again too.
    """

    def decorated(search: Callable[Asked, Found]) -> Callable[Asked, Found]:
        @wraps(search)
        def found(*asked: Asked.args, **by_name: Asked.kwargs) -> Found:
            def compute() -> Any:
                try:
                    return [write(search(*asked, **by_name))]
                except error as too_many:
                    return str(too_many)

            value = OPTIMA.find(key_of(search.__module__, search.__name__, asked, sorted(by_name.items())), compute)
            if isinstance(value, str):
                raise error(value)
            return parse(value[0])

        return found

    return decorated


def fraction_as_json(value: Fraction | None) -> str | None:
    """Return a fraction as text; None for None."""
    return None if value is None else str(value)


def fraction_of_json(text: str | None) -> Fraction | None:
    """Return the fraction of a text; None for None."""
    return None if text is None else Fraction(text)


def key_of(*asked: object) -> str:
    """Return a hash of all numbers that define a call; names of problems and fields left at their default do not
    count."""
    return sha256(repr(_numbers(asked)).encode()).hexdigest()[:14]


def _numbers(value: object) -> object:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Objective) and value.leaves is None:
        return value.name.upper()
    if isinstance(value, Problem):
        rows = [row for name in _FEATURES for row in _rows(getattr(value, name))]
        rows += [row for row in _rows(value) if row[0] not in (*_FEATURES, "name")]
        known = {_STORED_NAMES.get(name, name): (one, default) for name, one, default in rows}
        own = {name: known[name] for name in sorted(known, key=_NAMES.index)}
        return [(name, _numbers(one)) for name, (one, default) in own.items() if one != default]
    if is_dataclass(value) and not isinstance(value, type):
        without = {"name"} if isinstance(value, PlanProblem) else set()
        return [(name, _numbers(one)) for name, one, default in _rows(value) if one != default and name not in without]
    if isinstance(value, dict):
        return [(_numbers(key), _numbers(one)) for key, one in value.items()]
    if isinstance(value, (tuple, list)):
        return [*map(_numbers, without_later_fields(value))]
    return repr(value)


def without_later_fields(value: Sequence[Any]) -> Sequence[Any]:
    """Return the entries of a list or tuple without fields newer than the stored keys that are left at their
    default."""
    if isinstance(value, Choice):
        # Stored keys have the number and lengths of pieces as fields of a choice.
        return [*value[:2], *value.cut]
    defaults = getattr(value, "_field_defaults", {})
    names = getattr(value, "_fields", ())
    newer = {at for at, name in enumerate(names) if name in _LATER_FIELDS and value[at] == defaults[name]}
    return [one for at, one in enumerate(value) if at not in newer] if newer else value


def _rows(value: Any) -> list[tuple[str, object, object]]:
    """Return (name, value, default) of each field of a dataclass that counts in comparisons."""
    found = [(one.name, getattr(value, one.name), one.default) for one in fields(value) if one.compare]
    return [row for one in found for row in _parts(*one)]


def _parts(name: str, value: object, default: object) -> list[tuple[str, object, object]]:
    """Return the rows of a field: one, or of a value whose parts were fields of their own one for each part."""
    names = _STORED_PARTS.get(type(value), ())
    if not names:
        return [(name, value, default)]
    assert isinstance(value, tuple) and isinstance(default, tuple)
    return [*zip(names, value, default, strict=True)]


def _drawn(key: str) -> bool:
    """Return True if the key is in the day's share of those computed again."""
    return int(sha256(f"{SEED} {key}".encode()).hexdigest(), 16) % SHARE == 0


def main(files: list[str]) -> int:
    """Run the tests that compare with optima (or `files`) in this process, which writes the table; return pytest's exit
    code."""
    import pytest

    tests = Path(__file__).parents[1]
    every = sorted(str(path) for path in tests.rglob("test_*.py") if _USES.search(path.read_text(encoding="utf-8")))
    os.environ[RECORD] = "more" if files else "all"
    os.environ.setdefault("PIPESCHED_DAY", "all")  # of every day
    return int(pytest.main(["-q", "-p", "no:cacheprovider", *(files or every)]))


def write(more: bool) -> None:
    """Write the recorded optima to the table, in addition to the stored ones (`more`) or in their place."""
    known = json.loads(TABLE.read_text(encoding="utf-8")) if more and TABLE.exists() else {}
    rows = sorted((known | (OPTIMA.record or {})).items())
    text = ",\n".join(f"{json.dumps(key)}:{json.dumps(one, separators=(',', ':'))}" for key, one in rows)
    write_whole(TABLE, f"{{\n{text}\n}}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
