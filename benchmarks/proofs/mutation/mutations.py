"""Mutations of a Python file: one operator, comparison, min or max, number or truth value changed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import NamedTuple


class Mutant(NamedTuple):
    """A changed source. `name` is the function, the expression and what it becomes: no line numbers."""

    name: str
    source: str


_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its text; messages and annotations stay as they are."""
    tree = ast.parse(source)
    return [Mutant(name, ast.unparse(tree)) for name in _each(tree)]


def changed_functions(before: str, after: str) -> set[str]:
    """The functions of a module that are not as they were, comments and layout apart; all of a new module."""
    old = _functions(ast.parse(before))
    return {name for name, text in _functions(ast.parse(after)).items() if old.get(name) != text}


def is_inside(mutant: str, functions: set[str]) -> bool:
    """True if a mutant of that name is in one of the functions."""
    inside = mutant.partition(":")[0]
    return any(inside == one or inside.startswith(f"{one}.") for one in functions)


def _functions(tree: ast.AST, inside: tuple[str, ...] = ()) -> dict[str, str]:
    """The outermost functions by their names, those of classes with the names of these."""
    found: dict[str, str] = {}
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            found[".".join((*inside, node.name))] = ast.dump(node)
        elif isinstance(node, ast.ClassDef):
            found |= _functions(node, (*inside, node.name))
    return found


def _each(tree: ast.Module) -> Iterator[str]:
    """The name of each mutant, which the tree is while that is looked at."""
    found = Counter[str]()
    for inside, node in list(_places(tree, ())):
        if _can_change(node):
            before, own = ast.unparse(node), dict(vars(node))
            vars(node).update(deepcopy(own))
            _change(node)
            name = f"{'.'.join(inside)}: {before} -> {ast.unparse(node)}"
            found[name] += 1
            yield f"{name} #{found[name]}" if found[name] > 1 else name
            vars(node).update(own)


def _places(node: ast.AST, inside: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ast.AST]]:
    """Every expression that may be changed, with the names of the classes and functions it stands in."""
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
        return
    yield inside, node
    within = (*inside, node.name) if isinstance(node, ast.FunctionDef | ast.ClassDef) else inside
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _places(child, within)


def _can_change(node: ast.AST) -> bool:
    match node:
        case ast.Compare():
            return type(node.ops[0]) in _COMPARISONS
        case ast.BinOp() | ast.AugAssign():
            return type(node.op) in _OPERATORS
        case ast.Call(func=ast.Name(id=name)):
            return name in _NAMES
        case ast.UnaryOp():
            return isinstance(node.op, ast.USub | ast.Not)
        case ast.Constant():
            return isinstance(node.value, int)
        case _:
            return isinstance(node, ast.BoolOp | ast.IfExp)


def _change(node: ast.AST) -> None:
    match node:
        case ast.Compare():
            node.ops[0] = _COMPARISONS[type(node.ops[0])]()
        case ast.BinOp() | ast.AugAssign():
            node.op = _OPERATORS[type(node.op)]()
        case ast.Call(func=ast.Name() as function):
            function.id = _NAMES[function.id]
        case ast.UnaryOp():
            node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
            node.operand = node.operand if isinstance(node.op, ast.UAdd) else ast.UnaryOp(ast.Not(), node.operand)
        case ast.Constant():
            node.value = not node.value if isinstance(node.value, bool) else int(str(node.value)) + 1
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.IfExp():
            node.body, node.orelse = node.orelse, node.body
