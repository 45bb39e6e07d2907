"""Docstrings and names use the standard terms of docs/concepts.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
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
_SECTION = (ROOT / "docs/concepts.md").read_text().partition("## Standard terms")[2].partition("\n## ")[0]
_REFUSED = [
    word.strip()
    for row in re.findall(r"^\| ([^|]+) \|", _SECTION, re.MULTILINE)[1:]
    for word in re.sub(r"\(.*?\)", "", row).split(",")
]
_BEGINNING = re.compile(r"(What|Which|Those|Whether|How|It|As)\b")
_WORD = re.compile(rf"(?<!under )\b({'|'.join(set(_REFUSED) - {'below', 'back', 'words', 'said'})})\b", re.IGNORECASE)


def _objections(path: Path, text: str) -> Iterator[str]:
    """Each docstring or name of a module that the standard terms refuse."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        name = path.stem if isinstance(node, ast.Module) else node.name
        if isinstance(node, ast.Module | ast.ClassDef) and _refused_in(name):
            yield f"{path}: the name {name}"
        document = ast.get_docstring(node) or ""
        if _BEGINNING.match(document):
            yield f"{path}: {name} begins with {document.split()[0]!r}"
        found = _WORD.search(re.sub(r"`[^`]*`", "", document))
        if found:
            yield f"{path}: {name} says {found[0]!r}"


def _refused_in(name: str) -> bool:
    parts = {part.lower() for part in re.findall(r"[A-Z]?[a-z]+", name)}
    return bool(parts & set(_REFUSED))


@pytest.mark.parametrize("package", PACKAGES)
def test_the_words_of_a_package(package: str) -> None:
    found = [
        objection
        for path in sorted((ROOT / package).rglob("*.py"))
        for objection in _objections(path.relative_to(ROOT), path.read_text())
    ]
    assert not found, "\n".join(found)


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
