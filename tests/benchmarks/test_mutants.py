"""Mutation testing: what a mutant is, and that its lists name files, tests and mutants that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.proofs.mutants import markdown
from benchmarks.proofs.mutation.equivalent_mutants import EQUIVALENT
from benchmarks.proofs.mutation.mutations import changed_functions, is_inside, mutants, names
from benchmarks.proofs.mutation.tests_of_files import TESTS

ROOT = Path(__file__).resolve().parents[2]


def test_one_mistake_each() -> None:
    source = "def f(a, b):\n    return min(a, b) if a < 1 else -a\n"
    found = {mutant.name: mutant.source for mutant in mutants(source)}
    assert found["f: a < 1 -> a <= 1"] == "def f(a, b):\n    return min(a, b) if a <= 1 else -a"
    assert set(found) == {
        "f: min(a, b) if a < 1 else -a -> -a if a < 1 else min(a, b)",
        "f: a < 1 -> a <= 1",
        "f: 1 -> 2",
        "f: min(a, b) -> max(a, b)",
        "f: -a -> +a",
    }


@pytest.mark.parametrize("file", TESTS)
def test_every_file_has_tests(file: str) -> None:
    assert (ROOT / file).exists()
    assert [test for test in TESTS[file] if not (ROOT / test).exists()] == []


@pytest.mark.parametrize("file", EQUIVALENT)
def test_mutants_that_change_nothing_are_of_files_that_are_mutated(file: str) -> None:
    assert file in TESTS


def test_a_row_for_each_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    file = "solver/bounds/analytic/idle_time/memory_energy.py"
    every = names((ROOT / file).read_text(encoding="utf-8"))
    equal = next(iter(EQUIVALENT[file]))
    one, other = [name for name in every if name != equal][:2]
    found = {file: {one: True, other: False, equal: False, "of other code": False}}
    assert f"| `{Path(file).parent}` | 1 | {len(every)} | 3 | 1 | 1 | 1 |" in markdown(found, "here")


def test_only_functions_that_have_changed_are_looked_at() -> None:
    before = "def f(a):\n    return a < 1\n\n\nclass C:\n    def g(self, a):\n        return -a\n"
    after = before.replace("-a", "a + 1").replace("return a < 1", "return a < 1  # the same")
    assert changed_functions(before, after) == {"C.g"}
    assert changed_functions("", after) == {"f", "C.g"}
    found = [mutant.name for mutant in mutants(after) if is_inside(mutant.name, {"C.g"})]
    assert found == ["C.g: a + 1 -> a - 1", "C.g: 1 -> 2"]
