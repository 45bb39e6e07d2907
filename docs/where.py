"""Finds files, classes and functions by the words of their names and of the first lines of their docstrings.

python -m docs.where period bound
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_DEFINED = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Place(NamedTuple):
    """A module, class or function: its file, its name (empty for a module), and the first line of its docstring."""

    file: str
    name: str
    first_line: str

    def has(self, words: Sequence[str]) -> bool:
        """Return True if each word occurs in the file's path, the name or the first line, in upper or lower case."""
        text = " ".join(self).lower()
        return all(word.lower() in text for word in words)


@cache
def places() -> tuple[Place, ...]:
    """Return all modules of the packages, each followed by its classes and functions, in the order of paths."""
    return (*_places(),)


def _places() -> Iterator[Place]:
    for package in sorted(path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"):
        for path in sorted(package.rglob("*.py")):
            tree, file = ast.parse(path.read_text(encoding="utf-8")), str(path.relative_to(ROOT))
            yield Place(file, "", _first_line(tree))
            yield from _defined(file, "", tree)


def found(words: Sequence[str]) -> list[Place]:
    """Return the places that have all words: those of which the file has them first, then classes and functions."""
    return sorted((place for place in places() if place.has(words)), key=lambda place: bool(place.name))


def _defined(file: str, within: str, tree: ast.AST) -> Iterator[Place]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _DEFINED):
            name = f"{within}{node.name}"
            yield Place(file, name, _first_line(node))
            yield from _defined(file, f"{name}.", node) if isinstance(node, ast.ClassDef) else ()


def _first_line(node: ast.Module | _DEFINED) -> str:
    return (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit("python -m docs.where WORD …: the words of what you look for, such as: period bound")
    lines = (f"{file}{f', {name}' if name else ''}: {line}\n" for file, name, line in found(sys.argv[1:]))
    sys.stdout.write("".join(lines))
