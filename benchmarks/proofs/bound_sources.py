"""A digest of the code of the bounds, so that counts of a stress test say which code they are of."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


@cache
def digest_of_bounds() -> str:
    """Changes with the code of any bound, and with no comment, docstring or line break."""
    return digest([*sorted((_ROOT / "solver" / "bounds").rglob("*.py")), _ROOT / "solver/cyclic/period_bounds.py"])


def digest(files: Iterable[Path]) -> str:
    """Of the syntax trees of some files, without docstrings."""
    found = hashlib.sha256()
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
                del node.body[0]
        found.update(ast.dump(tree).encode())
    return found.hexdigest()[:16]
