"""The wheel: one name in site-packages, and all commands where the user's own modules have the names of our packages."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from commands.main import main

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("pipesched", "heuristics", "formulations", "solver", "runtime", "plots", "targets", "web", "commands")
MOVED = {
    "solver", "solver.solve", "solver.bounds", "solver.bounds.analytic.load", "runtime", "runtime.pytorch.models",
    "plots",
}  # fmt: skip

# Builds the source distribution, from what it unpacks to the wheel, and from the checkout that of an editable install.
BUILD = """
import os, sys, tarfile
from setuptools import build_meta
source, out = sys.argv[1:]
for folder in ("sdist", "editable", "unpacked", "wheel"):
    os.makedirs(f"{out}/{folder}")
os.chdir(source)
sdist = build_meta.build_sdist(f"{out}/sdist")
build_meta.build_editable(f"{out}/editable")
safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from Python 3.11.4 on
tarfile.open(f"{out}/sdist/{sdist}").extractall(f"{out}/unpacked", **safely)
os.chdir(f"{out}/unpacked/" + os.listdir(f"{out}/unpacked")[0])
os.makedirs("build/lib/solver")
open("build/lib/solver/gone.py", "w").close()  # as if an older version was built here before
build_meta.build_wheel(f"{out}/wheel")
"""

MODEL = """
import torch
from pipesched import PipelineModel

def make(stages, dtype):
    torch.manual_seed(1)
    data = lambda n: torch.full((2, 4), 0.1 * n, dtype=dtype)
    made = [torch.nn.Linear(4, 4).to(dtype) for _ in range(stages)]
    return PipelineModel(made, data, data, torch.nn.functional.mse_loss)
"""


def script(name: str) -> ModuleType:
    """A file at the top of the repository as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def setup_py() -> ModuleType:
    return script("setup")


@pytest.mark.parametrize(
    ("source", "rewritten"),
    [
        ("from solver.solve import solve", "from pipesched.solver.solve import solve"),
        ("def f():\n    from  plots import (\n  a,\n b)", "def f():\n    from  pipesched.plots import (\n  a,\n b)"),
        ("if X: import solver.solve, os; f()", "if X: import pipesched.solver.solve, os; from pipesched import solver; f()"),
        ("import solver.solve as s, plots", "import pipesched.solver.solve as s, pipesched.plots; from pipesched import plots"),
        ("from . import solver", "from . import solver"),
        ("from solvers import solve", "from solvers import solve"),
        ("é = 'é'; from plots import é", "é = 'é'; from pipesched.plots import é"),
        ("solver.solve(plots)", "solver.solve(plots)"),
        ('R("-m", "runtime.pytorch.models")', 'R("-m", "pipesched.runtime.pytorch.models")'),
        ('import_module("plots")', 'import_module("pipesched.plots")'),
        ('X: Registry = Registry("solver", "solvers")', 'X: Registry = Registry("pipesched.solver", "solvers")'),
        ('f("see solver.bounds.load.X, and not mysolver.bounds")', 'f("see pipesched.solver.bounds.load.X, and not mysolver.bounds")'),
        ('"""In `solver.solve`, unlike solver.py."""', '"""In `pipesched.solver.solve`, unlike solver.py."""'),
        ('{"solver": 1, f"{plots.x}": "a solver"}', '{"solver": 1, f"{plots.x}": "a solver"}'),
    ],
)  # fmt: skip
def test_a_source_is_rewritten(source: str, rewritten: str, setup_py: ModuleType) -> None:
    assert setup_py.relocated(source, "x.py", MOVED) == rewritten


@pytest.mark.parametrize(
    "source",
    [
        'x = "solver"', 'x = "solver.absent"', 'x = "solver/solve.py"', 'x = f"{y} in solver.solve"',
        'x = {"a": "plots"}', 'x = "solver.so" "lve"',
    ],
)  # fmt: skip
def test_a_string_that_may_name_a_module_stops_the_build(source: str, setup_py: ModuleType) -> None:
    with pytest.raises(setup_py.SetupError, match=r"x\.py:2: .* may name a"):
        setup_py.relocated(f"pass\n{source}", "x.py", MOVED)


class Built(NamedTuple):
    """The wheel, that of an editable install, and the folder of the source distribution from which the wheel is."""

    wheel: Path
    editable: Path
    unpacked: Path


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what of this checkout is built."""
    pytest.importorskip("setuptools.command.bdist_wheel")
    folder = tmp_path_factory.mktemp("checkout")
    for name in (*PACKAGES, "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def built(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    out = tmp_path_factory.mktemp("out")
    done = subprocess.run([sys.executable, "-c", BUILD, checkout, out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (unpacked,) = (out / "unpacked").iterdir()
    return Built(next((out / "wheel").glob("*.whl")), next((out / "editable").glob("*.whl")), unpacked)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("RECORD")}


def test_the_wheel_holds_every_file_of_packages_and_examples_and_nothing_else(built: Built) -> None:
    paths = {path for name in (*PACKAGES, "examples") for path in (ROOT / name).rglob("*") if path.is_file()}
    names = {path.relative_to(ROOT).as_posix() for path in paths if "__pycache__" not in path.parts}
    expected = {name if name.startswith("pipesched/") else f"pipesched/{name}" for name in names}
    assert {name for name in contents(built.wheel) if ".dist-info/" not in name} == expected


def test_every_package_at_the_top_is_in_the_wheel_or_named_here() -> None:
    """A new one would else be missing there, or a name of its own beside pipesched."""
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} == {*PACKAGES, "benchmarks"}


def test_the_wheel_says_that_it_installs_one_name(built: Built) -> None:
    (top_level,) = (text for name, text in contents(built.wheel).items() if name.endswith("/top_level.txt"))
    assert top_level.split() == [b"pipesched"]


def test_no_import_in_the_wheel_leads_to_a_package_beside_it(built: Built) -> None:
    beside = re.compile(rf"^\s*(from|import) ({'|'.join(PACKAGES[1:])})\b".encode(), re.MULTILINE)
    assert [name for name, text in contents(built.wheel).items() if name.endswith(".py") and beside.search(text)] == []


def test_the_source_distribution_is_the_checkout(checkout: Path, built: Built) -> None:
    """So a wheel made of the checkout itself is the same."""
    made = re.compile(r"PKG-INFO|setup\.cfg|\w+\.egg-info/.*|build/.*")
    ours, theirs = (
        {name: text for name, text in files(folder) if not made.fullmatch(name)}
        for folder in (checkout, built.unpacked)
    )
    assert theirs == ours


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file in a folder."""
    return ((path.relative_to(folder).as_posix(), path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def run(*command: str | Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    # In a new place all would be compiled anew.
    environment |= {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment(home: Path) -> Path:
    """The interpreter of a new environment; what we depend on it finds where this one does."""
    venv.create(home, with_pip=False)
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    (site_packages(home) / "dependencies.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    return python


def site_packages(home: Path) -> Path:
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(home), "platbase": str(home)}))


@pytest.fixture(scope="module")
def wheel_python(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = environment(tmp_path_factory.mktemp("venv"))
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "--no-compile", "--no-deps", "--no-index", built.wheel)
    return python


@pytest.fixture(scope="module")
def editable_python(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without pip, since nothing but modules is in this wheel that tests use."""
    home = tmp_path_factory.mktemp("venv")
    python = environment(home)
    with zipfile.ZipFile(built.editable) as archive:
        archive.extractall(site_packages(home))
    return python


def test_site_packages_get_one_name(wheel_python: Path) -> None:
    found = {path.name for path in site_packages(wheel_python.parents[1]).iterdir() if path.suffix != ".pth"}
    assert {re.sub(r"-.*\.", "-VERSION.", name) for name in found} == {"pipesched", "pipesched-VERSION.dist-info"}


@pytest.fixture
def shadows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder, which is the working directory: its modules are named like our packages and must not be used."""
    for name in PACKAGES[1:]:
        theirs = tmp_path / name / "__init__.py" if name in ("runtime", "commands") else tmp_path / f"{name}.py"
        theirs.parent.mkdir(exist_ok=True)
        theirs.write_text(f"raise RuntimeError('the {name} of the user')\n")
    (tmp_path / "theirs.py").write_text(MODEL)
    (tmp_path / "small.yaml").write_text("devices: 2\nmicrobatches: 2\ntimes: {forward: 1, backward: 1, weight: 1}\n")
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "small.yaml", "--schedule", "zb-h1", "-o", "schedule.json"]) == 0
    return tmp_path


def test_solve_uses_our_modules(wheel_python: Path, shadows: Path) -> None:
    command = ("-m", "pipesched", "solve", "small.yaml", "-o", "out", "--workers", "1", "--json")
    found = json.loads(run(wheel_python, *command))
    assert found["status"] == "optimal"
    assert "out/gantt.png" in found["files"]


def test_an_editable_install_uses_our_modules(editable_python: Path, checkout: Path, shadows: Path) -> None:
    run(editable_python, "-m", "pipesched", "simulate", "small.yaml", "--schedule", "1f1b")
    script = f"import importlib.util, json; print(json.dumps([importlib.util.find_spec(n).origin for n in {PACKAGES}]))"
    found = json.loads(run(editable_python, "-P", "-c", script))
    assert found == [str(checkout / name / "__init__.py") for name in PACKAGES]


def test_the_wheel_exports_the_same_module_for_megatron(wheel_python: Path, shadows: Path) -> None:
    """It is made of sources, which the wheel holds with other imports."""
    export = ["export", "schedule.json", "--format", "megatron", "-o"]
    assert main([*export, "ours.py"]) == 0
    run(wheel_python, "-P", "-m", "pipesched", *export, "theirs_too.py")
    assert Path("theirs_too.py").read_text() == Path("ours.py").read_text()


def test_go_uses_our_modules(editable_python: Path, shadows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = script("go")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(go, "PYTHON", editable_python)
    monkeypatch.setattr(go, "install", lambda *_: None)
    monkeypatch.setattr(go, "become", go.run)  # it would take the place of the process that runs the tests
    monkeypatch.setattr(sys, "argv", ["go.py", "simulate", "small.yaml", "--schedule", "zb-h1", "-o", "by_go.json"])
    assert go.main() == 0
    assert Path("by_go.json").exists()


def test_go_installs_the_extras_named_first(monkeypatch: pytest.MonkeyPatch) -> None:
    go, done = script("go"), []
    monkeypatch.setattr(go, "install", lambda *extras: done.append(extras))
    monkeypatch.setattr(go, "become", lambda *command, **variables: done.append((command, variables)))
    monkeypatch.setattr(sys, "argv", ["go.py", "--extra", "torch", "--extra", "web", "serve", "--port", "0"])
    go.main()
    program = {"PIPESCHED_PROGRAM": f"{Path(sys.executable).name} go.py"}
    assert done == [("torch", "web"), (("-P", "-m", "pipesched", "serve", "--port", "0"), program)]
    assert "PIPESCHED_PROGRAM" not in os.environ


def test_run_uses_our_modules_and_the_users_model(wheel_python: Path, shadows: Path) -> None:
    pytest.importorskip("torch.distributed.pipelining.schedules")
    model = ["--model", "theirs:make", "--steps", "2", "--device", "cpu"]
    assert json.loads(run(wheel_python, "-m", "pipesched", "run", "schedule.json", *model, "--json"))["good"]


def test_the_script_and_a_notebook_use_the_wheels_modules(wheel_python: Path, shadows: Path) -> None:
    """A notebook looks for modules in its folder first, as `python -c` does; it finds the program that compiles, too."""
    assert run(wheel_python.with_name("pipesched"), "simulate", "small.yaml", "--schedule", "1f1b")
    script = (
        "import importlib; from pipesched import *; from pipesched.solver.limits import Limits as L; "
        "from pipesched.solver.engine.kernels import KERNELS as K; importlib.import_module(K.module); "
        "print(L is Limits, draw_gantt, K.module)"
    )
    assert re.match(r"True <function draw_gantt.* pipesched\.solver\.", run(wheel_python, "-c", script))
