"""Mutation testing: what a mutant is, which functions have changed, and whose tests run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.proofs.mutants import that_import
from benchmarks.proofs.mutation.mutations import changed_functions, is_inside, mutants
from benchmarks.proofs.mutation.named.catalogue import MUTANTS
from benchmarks.proofs.mutation.named.mutant import NamedMutant
from pipesched.errors import BadInput
from tests.support.in_turn import in_turn

ROOT = Path(__file__).parents[2]


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


def test_the_tests_of_a_file_are_those_that_import_it(tmp_path: Path) -> None:
    texts = ("from a.b import f", "from a import b", "import a.b", "from a.bc import f", "from a import bc")
    for number, text in enumerate(texts):
        (tmp_path / f"test_{number}.py").write_text(f"{text}\n")
    found = that_import("a/b.py", tmp_path.iterdir())
    assert [Path(one).name for one in found] == ["test_0.py", "test_1.py", "test_2.py"]


def test_only_functions_that_have_changed_are_looked_at() -> None:
    before = "def f(a):\n    return a < 1\n\n\nclass C:\n    def g(self, a):\n        return -a\n"
    after = before.replace("-a", "a + 1").replace("return a < 1", "return a < 1  # the same")
    assert changed_functions(before, after) == {"C.g"}
    assert changed_functions("", after) == {"f", "C.g"}
    found = [mutant.name for mutant in mutants(after) if is_inside(mutant.name, {"C.g"})]
    assert found == ["C.g: a + 1 -> a - 1", "C.g: 1 -> 2"]


@in_turn("mutant", MUTANTS, ids=lambda one: one.name)
def test_each_named_mutant_can_be_made(mutant: NamedMutant) -> None:
    source = (ROOT / mutant.file).read_text()
    compile(mutant.mutated(source), mutant.file, "exec")


def test_the_tests_of_named_mutants_are_there(request: pytest.FixtureRequest) -> None:
    """With their parameters, whose names once changed with the type of an objective.

    Those that this run has not collected are looked for in their files.
    """
    lacking = {test for mutant in MUTANTS for test in mutant.tests}
    lacking -= _named(item.nodeid for item in request.session.items)
    if lacking:
        files = sorted({test.partition("::")[0] for test in lacking})
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
        lacking -= _named(found)
    assert not lacking


def _named(tests: Iterable[str]) -> set[str]:
    """The names by which these tests can be asked for: of a file, of all cases of a function, of one."""
    return {name for one in tests for name in (one, one.partition("[")[0], one.partition("::")[0])}


def test_names_of_mutants_differ() -> None:
    assert len({one.name for one in MUTANTS}) == len(MUTANTS)


def test_a_named_mutant_whose_text_is_gone_or_twice_there_is_refused() -> None:
    one = NamedMutant("longer", "a.py", "ticks", "ticks + 1", "a bound", ())
    assert one.mutated("return ticks") == "return ticks + 1"
    for source in ("return 1", "ticks = ticks"):
        with pytest.raises(BadInput, match=r"longer: a\.py has . times 'ticks', not once"):
            one.mutated(source)
