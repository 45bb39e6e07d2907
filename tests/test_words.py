"""Docstrings and names use the standard terms of docs/concepts.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "benchmarks",
    "commands",
    "docs",
    "examples",
    "formulations",
    "heuristics",
    "pipesched",
    "plots",
    "runtime",
    "solver",
    "targets",
    "tests/support",
    "web",
)
# Packages in whose code every name keeps to the terms, not those of modules and classes alone.
NAMED = (
    "benchmarks",
    "commands",
    "docs",
    "examples",
    "formulations",
    "heuristics",
    "pipesched",
    "plots",
    "runtime",
    "solver",
    "targets",
    "tests/support",
    "web",
)
_SECTION = (ROOT / "docs/concepts.md").read_text().partition("## Standard terms")[2].partition("\n## ")[0]
_REFUSED = [
    word.strip()
    for row in re.findall(r"^\| ([^|]+) \|", _SECTION, re.MULTILINE)[1:]
    for word in re.sub(r"\(.*?\)", "", row).split(",")
]
# As a part of a name `back` stands for the backward and `words` for text.
_NOT_IN_NAMES = set(_REFUSED) - {"back", "words"}
_PLAIN_ENGLISH = re.compile(r"under_way|greatest_attainable_below|most_below", re.IGNORECASE)
# Fields whose names are keys of evidence in files.
_KEYS = {("pipesched/results/diagram_evidence.py", name) for name in ("below", "guide", "ways")}
_BEGINNING = re.compile(r"(What|Which|Those|Whether|How|It|As)\b")
_WORD = re.compile(rf"(?<!under )\b({'|'.join(set(_REFUSED) - {'below', 'back', 'words', 'said'})})\b", re.IGNORECASE)


def _objections(path: Path, text: str) -> Iterator[str]:
    """Each docstring or name of a module that the standard terms refuse."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        name = path.stem if isinstance(node, ast.Module) else node.name
        if isinstance(node, ast.Module | ast.ClassDef) and _parts(name) & set(_REFUSED):
            yield f"{path}: the name {name}"
        document = ast.get_docstring(node) or ""
        if _BEGINNING.match(document):
            yield f"{path}: {name} begins with {document.split()[0]!r}"
        found = _WORD.search(re.sub(r"`[^`]*`", "", document))
        if found:
            yield f"{path}: {name} says {found[0]!r}"


def _parts(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


@cache
def _is_refused(name: str) -> bool:
    return bool(_parts(_PLAIN_ENGLISH.sub("", name)) & _NOT_IN_NAMES)


def _refused_names(path: Path, text: str) -> Iterator[str]:
    """Each name given in this code to a function, parameter, field or variable that the standard terms refuse."""
    for node in ast.walk(ast.parse(text)):
        for name in _given(node):
            if _is_refused(name) and (path.as_posix(), name) not in _KEYS:
                yield f"{path}:{getattr(node, 'lineno', 1)}: the name {name}"


def _given(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name


@pytest.mark.parametrize("package", PACKAGES)
def test_the_words_of_a_package(package: str) -> None:
    found = [
        objection
        for path in sorted((ROOT / package).rglob("*.py"))
        for objection in _objections(path.relative_to(ROOT), path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("package", NAMED)
def test_the_names_of_a_package(package: str) -> None:
    found = [
        objection
        for path in sorted((ROOT / package).rglob("*.py"))
        for objection in _refused_names(path.relative_to(ROOT), path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("file", "name"), sorted(_KEYS))
def test_names_that_are_keys_of_files_are_there(file: str, name: str) -> None:
    assert name in {found for node in ast.walk(ast.parse((ROOT / file).read_text())) for found in _given(node)}


def test_refused_names_are_found() -> None:
    text = """
from some import thing as told_apart
HELD, UNDER_WAY = 1, 2
class Shape:
    both_ways: bool
    left_out = words = call_back = under_way = ()
    def guide(self, below, *, rest=0):
        self._behind = raised = {beside: rest for beside in below}
        try:
            with open(rest) as way:
                return lambda said: way
        except OSError as anew:
            match anew:
                case comes_first:
                    raise comes_first from anew
"""
    assert {*_refused_names(Path("some/module.py"), text)} == {
        f"some/module.py:{line}: the name {name}"
        for line, name in (
            (2, "told_apart"), (3, "HELD"), (5, "both_ways"), (7, "guide"), (7, "below"), (7, "rest"), (8, "_behind"),
            (8, "beside"), (10, "way"), (11, "said"), (12, "anew"), (14, "comes_first"),
        )
    }  # fmt: skip


def test_refused_words_are_found() -> None:
    text = '''
"""What is held."""
class Ways:
    """The modes, `held` in code."""
'''
    assert list(_objections(Path("some/module.py"), text)) == [
        "some/module.py: module begins with 'What'",
        "some/module.py: module says 'held'",
        "some/module.py: the name Ways",
    ]
