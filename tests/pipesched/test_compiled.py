"""Machine code on disk is used as long as nothing that it was made of has changed, in whichever file that stands."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numba
import pytest

from pipesched.compiled import cache_folder, fingerprint

_OUTER = """
from pipesched.compiled import compiled
from kernel_inner import Pair, scaled
@compiled
def outer(x):
    return scaled(x) + below(x)
@compiled
def below(x):
    return 1
@compiled
def count(upto):
    at = 0
    while at < upto:
        at = added(at, 1)
    return at
@compiled
def added(one, other):
    return one + other
@compiled
def limited(x):
    if x > 3:
        raise ValueError("too large")
    return x
@compiled
def sum_of_limited(numbers):
    total = 0
    for x in numbers:
        total += limited(x)
    return total
@compiled
def of_pair(pair, more):
    return pair.one + 0 * more[0]
"""
_INNER = """
from typing import NamedTuple
from pipesched.compiled import inner
FACTOR = {factor}
class Pair(NamedTuple):
    {first}: int
    {other}: int
@inner
def scaled(x):
    '''{text}'''
    return Pair(x, 0){plus}[0] * FACTOR
"""
_PLAIN = {"factor": "2", "first": "one", "other": "other", "text": "Stated.", "plus": ""}


def modules(folder: Path, **changed: str) -> ModuleType:
    """A kernel, whose inner function is in another file, as a new process would import it."""
    pair = changed.get("pair", "Pair")
    (folder / "kernel_inner.py").write_text(_INNER.format_map(_PLAIN | changed).replace("Pair", pair))
    (folder / "kernel_outer.py").write_text(_OUTER.replace("Pair", pair))
    for name in ("kernel_inner", "kernel_outer"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module("kernel_outer")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # of two edits within a second the first would stay
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "code"))
    return tmp_path


def test_code_is_read_from_disk_until_an_inner_file_changes(folder: Path) -> None:
    for factor, hits in (("2", 0), ("2", 1), ("3", 0), ("2", 1)):
        outer = modules(folder, factor=factor).outer
        assert outer(5) == 5 * int(factor) + 1
        assert sum(outer.stats.cache_hits.values()) == hits
        assert cache_folder(outer).is_relative_to(folder / "code")


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"text": "Stated better."}, True),
        ({"first": "two"}, False),
        ({"plus": "[:1]"}, False),
        ({"factor": "2.0"}, False),
    ],
)
def test_what_it_is_made_of_is_told_by_code_constants_and_fields_and_not_by_words(
    folder: Path, changed: dict[str, str], same: bool
) -> None:
    before = fingerprint([modules(folder).outer])
    assert (fingerprint([modules(folder, **changed).outer]) == before) is same


def test_python_and_compiled_code_may_call_the_same_function(folder: Path) -> None:
    """Each has its own code, on disk too."""
    for hits in (0, 1):
        outer = modules(folder)
        assert (outer.outer(5), outer.below(5), outer.scaled(5)) == (11, 1, 10)
        assert [sum(one.stats.cache_hits.values()) for one in (outer.outer, outer.below, outer.scaled)] == [hits] * 3


def test_a_function_is_compiled_once_whichever_numbers_are_known(folder: Path) -> None:
    outer = modules(folder)
    assert outer.count(3) == 3
    assert len(outer.added.callee.signatures) == 1 and not outer.added.signatures


def test_what_is_handed_over_in_a_named_tuple_is_known_by_its_fields(folder: Path) -> None:
    """Of which nothing stands in the function that takes it."""
    for first, other, hits in (("one", "other", 0), ("one", "other", 1), ("other", "one", 0)):
        outer = modules(folder, first=first, other=other)
        assert outer.of_pair(outer.Pair(**{first: 1, other: 2}), (3,)) == outer.Pair(**{first: 1, other: 2}).one
        assert sum(outer.of_pair.stats.cache_hits.values()) == hits


def test_code_for_a_named_tuple_that_is_called_otherwise_is_made_anew(folder: Path) -> None:
    """Where it was moved to another file, too: its name and its module stand in the file with the code."""
    for pair in ("Pair", "Couple"):
        outer = modules(folder, pair=pair)
        assert outer.of_pair(getattr(outer, pair)(1, 2), (3,)) == 1
        assert sum(outer.of_pair.stats.cache_hits.values()) == 0


def test_what_python_does_not_call_has_no_files_of_its_own(folder: Path) -> None:
    """And what others compile may call it."""
    outer = modules(folder)
    assert outer.outer(5) == 11
    assert {path.name.partition("-")[0] for path in (folder / "code").rglob("*.nbi")} == {"kernel_outer.outer"}
    scaled = outer.scaled
    assert numba.njit(lambda x: scaled(x) + 1)(5) == 11


def test_an_error_of_what_compiled_code_calls_reaches_python(folder: Path) -> None:
    """Functions that only compiled code calls have no machine code of their own."""
    for hits in (0, 1):
        outer = modules(folder)
        assert outer.sum_of_limited((1, 2, 3)) == 6
        with pytest.raises(ValueError, match="too large"):
            outer.sum_of_limited((1, 2, 4))
        assert sum(outer.sum_of_limited.stats.cache_hits.values()) == hits
        code = [
            one.library.get_pointer_to_function(one.fndesc.llvm_func_name)
            for one in outer.limited.callee.overloads.values()
        ]
        assert code == ([] if hits else [0])
