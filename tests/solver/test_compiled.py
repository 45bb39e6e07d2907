"""No compiled function that Python calls returns a named tuple: ended from outside, it would end the process."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("pipesched", "heuristics", "formulations", "solver")
_COMPILERS = ("compiled", "inner", "inlined", "substituted")

Name = tuple[str, str]  # module, and the name in it


@dataclass
class Source:
    """A module: what its names stand for, its classes of named tuples, its compiled functions, and calls by others."""

    names: dict[str, Name] = field(default_factory=dict)
    named_tuples: set[Name] = field(default_factory=set)
    compiled: dict[Name, ast.FunctionDef] = field(default_factory=dict)
    called: set[Name] = field(default_factory=set)


def source_of(module: str, text: str) -> Source:
    found, tree = Source(), ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found.names |= {one.asname or one.name: (node.module or "", one.name) for one in node.names}
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.names[node.name] = (module, node.name)
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("NamedTuple") for base in node.bases):
            found.named_tuples.add((module, node.name))
        if isinstance(node, ast.FunctionDef) and is_compiled(node):
            found.compiled[module, node.name] = node
        else:
            found.called |= set(calls(node, found.names))
    return found


def is_compiled(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(one).split("(")[0].split(".")[-1] in _COMPILERS for one in function.decorator_list)


def calls(node: ast.AST, names: Mapping[str, Name]) -> Iterator[Name]:
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in names:
            yield names[one.func.id]


def returns(function: ast.FunctionDef, names: Mapping[str, Name], makers: set[Name]) -> bool:
    """Whether what a function returns is, or has in it, what one of these makes."""
    made = {
        name.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and makers & set(calls(node.value, names))
        for target in node.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            for part in node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]:
                if isinstance(part, ast.Name) and part.id in made:
                    return True
                if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and names.get(part.func.id) in makers:
                    return True
    return False


def returned_to_python(sources: Mapping[str, Source]) -> set[Name]:
    """Compiled functions that return a named tuple and are called by Python code."""
    makers = {name for one in sources.values() for name in one.named_tuples}
    classes, count = set(makers), -1
    while len(makers) > count:
        count = len(makers)
        for one in sources.values():
            makers |= {name for name, function in one.compiled.items() if returns(function, one.names, makers)}
    return {name for one in sources.values() for name in one.called} & (makers - classes)


def test_no_compiled_function_returns_a_named_tuple_to_python() -> None:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text() for path in paths}
    sources = {module: source_of(module, text) for module, text in modules.items()}
    assert sum(len(one.compiled) for one in sources.values()) > 150
    assert returned_to_python(sources) == set()


_MODULE = """
from typing import NamedTuple
from pipesched.compiled import compiled
class Pair(NamedTuple):
    one: int
    other: int
@compiled
def plain():
    return 1, 2
@compiled
def made():
    return Pair(1, 2)
@compiled
def handed_on():
    found = made()
    return 3, found
@compiled
def used():
    return Pair(1, 2).one
def python():
    return {}()
"""


@pytest.mark.parametrize(("name", "refused"), [("made", 1), ("handed_on", 1), ("plain", 0), ("used", 0)])
def test_a_named_tuple_is_found_wherever_it_is_made(name: str, refused: int) -> None:
    assert len(returned_to_python({"kernel": source_of("kernel", _MODULE.format(name))})) == refused
