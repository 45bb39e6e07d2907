"""A digest of the code that a bound computes with, so that counts of a stress test say which code they are of."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
# Whose code is the bounds' own. What a problem is, what a row of a model says and how a number is written, is left to
# other tests.
_OWN = ("solver/bounds/",)


@cache
def digest_of(file: str) -> str:
    """Of a file of the repository and of all that it imports from the bounds' own packages.

    Changes with what is computed, and with no comment, docstring, line break, import or place of a definition.
    """
    return digest(sorted(_reached(_ROOT / file)))


def digest(files: Iterable[Path]) -> str:
    """Of the definitions in some files, in whichever file and order they are."""
    found = {definition for file in files for definition in _definitions(file)}
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()[:16]


def _reached(file: Path) -> set[Path]:
    """The file, and all that it imports, directly or not."""
    found, left = set[Path](), [file]
    while left:
        file = left.pop()
        if file not in found:
            found.add(file)
            left += _imported(file)
    return found


def _imported(file: Path) -> Iterator[Path]:
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            inside = node.module.replace(".", "/")
            places = [f"{inside}.py", *(f"{inside}/{name.name}.py" for name in node.names)]
            yield from (_ROOT / place for place in places if place.startswith(_OWN) and (_ROOT / place).exists())


def _definitions(file: Path) -> Iterator[str]:
    """Every statement of a module but its imports, without docstrings."""
    tree = _tree(file)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
    return (ast.dump(node) for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom))


def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))
