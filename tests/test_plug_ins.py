"""What registers itself in a registry stands alone: it imports nothing that registers itself there too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Published schedules are excepted: a variant is made of the schedule that it varies.
REGISTRIES = ("formulations.constraints", "solver.bounds.analytic", "runtime.exporters", "runtime.importers", "runtime.partitions", "plots", "commands")  # fmt: skip


def registers(tree: ast.Module) -> bool:
    calls = [node.value.func for node in tree.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    return any(isinstance(call, ast.Attribute) and call.attr == "register" for call in calls)


def imported(tree: ast.Module) -> set[str]:
    """The full names of imported modules, and of what is imported from them, which may be a module."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("package", REGISTRIES)
def test_plug_ins_of_one_registry_do_not_import_each_other(package: str) -> None:
    files = ROOT.joinpath(*package.split(".")).glob("*.py")
    trees = {f"{package}.{path.stem}": ast.parse(path.read_text(encoding="utf-8")) for path in files}
    plug_ins = {name: tree for name, tree in trees.items() if registers(tree)}
    assert plug_ins
    assert {name: both for name, tree in plug_ins.items() if (both := imported(tree) & plug_ins.keys() - {name})} == {}
