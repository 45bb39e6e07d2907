"""Docstrings of the production packages say what their readers cannot guess: when the result is None, and what is raised.

Readers see signature and docstring, of an enumeration its docstring, and not the body. A parameter that is gone has no
sentence, none refers to another docstring, and an error has its condition.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("commands", "formulations", "heuristics", "pipesched", "plots", "runtime", "solver", "targets", "web")
# Raised where the program itself is wrong, or by methods that only subclasses implement.
_OF_THE_PROGRAM = {"AssertionError", "NotImplementedError"}

# Names with which a sentence or clause of a docstring begins, as in "`steps` are in turn".
_EXPLAINED = re.compile(r"(?:^|[.;:] |\n)`([a-z_]\w*)`(?=: | is | are | has | have | says | say | gives )")
# In place of an explanation, the name of another function or class that has it.
_REFERRING = re.compile(r"\b(?:is|are) as (?:in|of|for|by) `|\bas of `|[Ss]ee there\b|\barguments are those of `")
# An error without the condition under which it is raised.
_BARE_ERROR = re.compile(r"\bRaises `\w+`(?:(?:,| and|, and|,? or) `\w+`)*\.")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _gaps(path: Path, text: str) -> Iterator[str]:
    """Each special case of a function, or member of an enumeration, that its docstring does not name, or name that is gone."""
    tree = ast.parse(text)
    known = _names(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef | Function) or (document := ast.get_docstring(node)) is None:
            continue
        if isinstance(node, ast.ClassDef):
            missing = [name for name in _members(node) if not _says(document, name)]
        else:
            missing = [name for name in _special(node) if not _says(document, name)]
            if (
                node.returns is not None
                and ast.unparse(node.returns) == "bool"
                and not re.search("True|False", document)
            ):
                missing.append("True")
            explained = {*_EXPLAINED.findall(document)} - known - _own_names(node)
            yield from (f"{path}: {node.name} explains {name}, which is gone" for name in sorted(explained))
        yield from (f"{path}: {node.name} does not say {name}" for name in missing)
        sentences = " ".join(document.split())
        if _REFERRING.search(sentences):
            yield f"{path}: {node.name} refers to another docstring"
        if _BARE_ERROR.search(sentences):
            yield f"{path}: {node.name} does not say when it raises an error"


def _names(tree: ast.Module) -> set[str]:
    """Return the names that any docstring of a module may explain: keys, attributes, imports, functions and classes."""
    found = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Attribute(value=ast.Name(id="self"), attr=name):
                found.add(name)
            case ast.Constant(value=str(name)) | ast.keyword(arg=str(name)) | ast.alias(name=name):
                found.add(name)
    return found


def _own_names(function: Function) -> set[str]:
    """Return the parameters and variables of a function."""
    inside = [*ast.walk(function)]
    return {one.arg for one in inside if isinstance(one, ast.arg)} | {
        one.id for one in inside if isinstance(one, ast.Name)
    }


def _says(document: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", document) is not None


def _members(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names of the members of an enumeration."""
    if any(ast.unparse(base).endswith(("Enum", "Flag")) for base in node.bases):
        for statement in node.body:
            if isinstance(statement, ast.Assign):
                yield from (target.id for target in statement.targets if isinstance(target, ast.Name))


def _special(node: Function) -> Iterator[str]:
    """Yield "None" if a function may return that or something else, and the names of the exceptions that it raises."""
    kinds = _union(node.returns)
    if len(kinds) > 1 and "None" in kinds:
        yield "None"
    yield from sorted(_raised(node.body, frozenset()) - _OF_THE_PROGRAM)


def _union(annotation: ast.expr | None) -> list[str]:
    """Return the types of a union, as text; one type if it is no union."""
    if isinstance(annotation, ast.BinOp):
        return _union(annotation.left) + _union(annotation.right)
    return [] if annotation is None else [ast.unparse(annotation)]


def _raised(nodes: list[ast.stmt], caught: frozenset[str]) -> set[str]:
    """Return the names of the exceptions that statements raise, except those caught there or raised in inner functions."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Raise) and node.exc is not None:
            name = ast.unparse(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
            found |= {name} - caught if re.fullmatch(r"[A-Z]\w*", name) else set()
        elif isinstance(node, ast.Try):
            here = {ast.unparse(one) for handler in node.handlers for one in _types(handler.type)}
            found |= _raised(node.body, caught | here) | _raised(node.orelse + node.finalbody, caught)
            found |= _raised([inner for handler in node.handlers for inner in handler.body], caught)
        elif not isinstance(node, Function | ast.ClassDef):
            for field in ("body", "orelse"):
                found |= _raised(getattr(node, field, []), caught)
            for case in getattr(node, "cases", []):
                found |= _raised(case.body, caught)
    return found


def _types(caught: ast.expr | None) -> list[ast.expr]:
    return [] if caught is None else caught.elts if isinstance(caught, ast.Tuple) else [caught]


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_say_special_cases(package: str) -> None:
    found = [
        gap
        for path in sorted((ROOT / package).rglob("*.py"))
        for gap in _gaps(path.relative_to(ROOT), path.read_text())
    ]
    assert not found, "\n".join(found)


def test_gaps_are_found() -> None:
    text = '''
class Shape(StrEnum):
    """A form: `ROUND`."""
    ROUND = "round"
    FLAT = "flat"  # with corners
    def area(self) -> float | None:
        """Return the area."""
        raise ValueError("no area")
class Other:
    """No enumeration."""
    LARGE = 1
def known(name: str) -> bool:
    """Return if there is one."""
def number(text: str) -> int | None:
    """Return the number; None without one. `KeyError` in other units. `text` is one. `unit` is its unit.

    Letters are as in `known`."""
    try:
        raise OSError
    except (OSError, KeyError):
        match text:
            case "":
                raise KeyError(text)
            case _:
                for _ in text:
                    with text:
                        raise EmptyError
def rows(moves: list[int]) -> list[int]:
    """Return the rows; `moves` are sorted, as of `known`. Raises `OSError` and `ValueError`."""
def lower(moves: list[int]) -> list[int]:
    """Return the lower rows; the other arguments are those of `rows`. Raises `ValueError` for no moves."""
def outer() -> None:
    """Do nothing."""
    def inner() -> None:
        raise ValueError
    try:
        inner()
    finally:
        raise LateError(1) from None
'''
    assert {*_gaps(Path("some/module.py"), text)} == {
        "some/module.py: Shape does not say FLAT",
        "some/module.py: area does not say None",
        "some/module.py: area does not say ValueError",
        "some/module.py: known does not say True",
        "some/module.py: number does not say EmptyError",
        "some/module.py: number explains unit, which is gone",
        "some/module.py: number refers to another docstring",
        "some/module.py: rows refers to another docstring",
        "some/module.py: rows does not say when it raises an error",
        "some/module.py: lower refers to another docstring",
        "some/module.py: outer does not say LateError",
    }
