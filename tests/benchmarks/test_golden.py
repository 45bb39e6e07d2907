"""Some of the stored values, drawn anew every day: what they are now is what they were. PIPESCHED_GOLDEN_SEED draws those of another day."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from random import Random

from benchmarks.golden.__main__ import differences, stored
from benchmarks.golden.cases import files
from benchmarks.golden.record import record

SEED = int(os.environ.get("PIPESCHED_GOLDEN_SEED") or datetime.now(UTC).strftime("%Y%m%d"))
COUNT = 15


def test_every_file_is_stored() -> None:
    assert [file.name for file in files()] == list(stored())


def test_values_are_those_stored() -> None:
    then = stored()
    chosen = Random(SEED).sample([file for file in files() if file.drawn], COUNT)
    lines = [line for file in chosen for line in differences(file.name, then[file.name], record(file))]
    assert not lines, f"PIPESCHED_GOLDEN_SEED={SEED}:\n" + "\n".join(lines)


def test_each_value_that_differs_is_a_line() -> None:
    then = {"notes": [], "published": {"gpipe": "1", "1f1b": "2"}}
    now = {"notes": ["a"], "published": {"gpipe": "1", "1f1b": "3"}, "search": "x"}
    assert list(differences("f", then, now)) == [
        "f: notes: stored [], now ['a']",
        "f: published: 1f1b: stored 2, now 3",
        "f: search: stored None, now x",
    ]
