"""Mutation testing: what a mutant is, and that its lists name files, tests and mutants that there are."""

from __future__ import annotations

import ast
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.mutants import markdown
from benchmarks.proofs.mutation import by_hand
from benchmarks.proofs.mutation.attacked import bound_refuted, check_refuted, rests_differ
from benchmarks.proofs.mutation.equivalent_mutants import BY_HAND, EQUIVALENT
from benchmarks.proofs.mutation.hand_made import HAND_MADE
from benchmarks.proofs.mutation.mutations import mutants, names
from benchmarks.proofs.mutation.tests_of_files import TESTS
from pipesched.checking import check
from pipesched.problem.problem import Problem
from pipesched.results.crossing_evidence import CrossingStepsBelow
from solver.bounds.crossing_below import bound
from solver.bounds.crossing_below.follow import Least

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
def test_mutants_that_change_nothing_are_mutants(file: str) -> None:
    assert file in TESTS
    every = set(names((ROOT / file).read_text(encoding="utf-8")))
    assert [name for name in EQUIVALENT[file] if name not in every] == []


def test_a_row_for_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    file = "solver/bounds/analytic/idle_time/memory_energy.py"
    every = names((ROOT / file).read_text(encoding="utf-8"))
    equal = next(iter(EQUIVALENT[file]))
    one, other = [name for name in every if name != equal][:2]
    found = {file: {one: True, other: False, equal: False, "of other code": False}}
    assert f"| `{file}` | {len(every)} | 3 | 1 | 1 | 1 |" in markdown(found, "here")


def test_mistakes_made_by_hand_are_of_code_that_there_is() -> None:
    """The text is there once, and parses when it is another one; its branches are attacked, and its tests are known."""
    every = [by_hand.name_of(mutant) for mutant in HAND_MADE]
    assert len(set(every)) == len(every)
    assert set(BY_HAND) <= set(every)
    branches = {branch.name for branch in BRANCHES}
    for mutant in HAND_MADE:
        source = (ROOT / mutant.file).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(by_hand.changed(source, mutant))) != ast.dump(ast.parse(source))
        assert branches.issuperset(mutant.branches)
        assert mutant.file in TESTS


def test_a_row_for_each_mistake_made_by_hand() -> None:
    one, other = map(by_hand.name_of, HAND_MADE[:2])
    text = by_hand.markdown({one: "3 problems of a branch", other: None}, "here")
    assert f"| `{HAND_MADE[0].file}` | {HAND_MADE[0].mistake} | 3 problems of a branch |" in text
    assert f"| {HAND_MADE[1].mistake} | survived the attack; tests not run |" in text


def test_an_attack_that_fails_without_a_mistake_is_no_attack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of each file with mistakes that nothing has noticed it is made once, on the file as it is."""
    monkeypatch.chdir(ROOT)
    one = next(mutant for mutant in HAND_MADE if mutant.branches and by_hand.name_of(mutant) not in BY_HAND)
    sources = []

    def attack(_: object, source: str, *__: object) -> int:
        sources.append(source)
        return 1

    monkeypatch.setattr(by_hand, "_attack", attack)
    monkeypatch.setattr(by_hand, "fails", lambda _, run: run() != 0)
    args = Namespace(files=one.file, seconds=1)
    assert by_hand._broken(args, {}, tmp_path) == [one.file]
    assert sources == [(ROOT / one.file).read_text(encoding="utf-8")]
    noticed = {by_hand.name_of(mutant): "tests" for mutant in HAND_MADE}
    assert by_hand._broken(args, noticed, tmp_path) == []


def test_kernels_that_hold_a_mistake_are_compiled_anew(tmp_path: Path) -> None:
    """Those of a file and of what imports it, directly or not; others stay."""
    folder = tmp_path / "solver/bounds/crossing_below"
    kernels = folder / "__pycache__"
    kernels.mkdir(parents=True)
    below = "from solver.bounds.crossing_below."
    for name, text in {"a": "", "b": f"{below}a import x", "c": f"{below}b import y", "d": ""}.items():
        (folder / f"{name}.py").write_text(text)
        (kernels / f"{name}.f-1.py311.nbi").touch()
    by_hand.forget_compiled(tmp_path, "solver/bounds/crossing_below/b.py")
    assert sorted(path.name[0] for path in kernels.iterdir()) == ["a", "d"]


def test_an_attack_ends_at_the_first_wrong_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the bound, and of the check: as they are, and where each adds a tick."""
    branch = ("crossings of steps below a value, blocks, span",)
    assert bound_refuted(branch, 2) is None
    assert check_refuted(branch, 2) is None
    assert rests_differ(branch, 2) is None
    sound = check.old_form

    def more(problem: Problem, evidence: CrossingStepsBelow) -> int:
        return sound(problem, evidence) + 1

    with monkeypatch.context() as patched:
        patched.setattr(check, "old_form", more)
        found = check_refuted(branch, 20)
        assert found is not None and found.branch == branch[0]
    least_below = bound.least_below

    def later(*given: object) -> Least:
        found = least_below(*given)  # type: ignore[arg-type]
        return found if found.ticks is None else found._replace(ticks=found.ticks + 1)

    monkeypatch.setattr(bound, "least_below", later)
    assert bound_refuted(branch, 20) is not None
