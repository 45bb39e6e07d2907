"""What registers itself in a registry stands alone: it imports nothing that registers itself there too."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from commands.shared.catalogue import COMMANDS

ROOT = Path(__file__).parents[1]
# Published schedules are excepted: a variant is made of the schedule that it varies.
REGISTRIES = ("formulations.constraints", "solver.bounds.analytic", "runtime.exporters", "runtime.importers", "runtime.partitions", "plots", "commands", "pipesched.files.features", "pipesched.files.plans.features")  # fmt: skip


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


def test_a_command_is_found_in_the_module_of_its_name() -> None:
    """By which the command line imports the one that is asked for."""
    modules = [path.stem for path in (ROOT / "commands").glob("*.py") if registers(ast.parse(path.read_text("utf-8")))]
    assert sorted(module.replace("_", "-") for module in modules) == COMMANDS.names()
    assert [COMMANDS.alone(name) for name in ("no-such", "shared", "../x", "")] == [None] * 4


def test_a_command_that_only_reads_loads_neither_solver_nor_matplotlib() -> None:
    script = (
        "import sys; from commands.main import main; code = main(['validate', 'no.json']);"
        "print(code, [name for name in ('solver', 'ortools', 'numba', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "2 []\n", done.stderr


def test_a_search_begins_without_matplotlib() -> None:
    script = "import sys, commands.solve; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr
