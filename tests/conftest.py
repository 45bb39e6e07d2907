"""What tests share: tables as wide as they need, whatever terminal the tests are started from; a problem file."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from pipesched.errors import DEFECTS
from pipesched.problem.problem import Objective
from solver.limits import Limits
from tests.support import forks, optima
from tests.support.counted import counted

ROOT = Path(__file__).parents[1]
# A tenth of the processor time went into looking for cycles among objects that live as long as the tests.
gc.set_threshold(20_000, 20, 20)
_TORCH_BEFORE = "torch" in sys.modules


class _Met(logging.Handler):
    """The defects that searches of this process met and left out."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


_MET = _Met()
DEFECTS.addHandler(_MET)


@pytest.fixture(autouse=True)
def no_defect_is_met(request: pytest.FixtureRequest) -> Iterator[None]:
    """A defect of a part, which a search notes and goes on without, fails the test, but for one marked `meets_defects`."""
    yield
    texts, _MET.texts = _MET.texts, []
    if texts and request.node.get_closest_marker("meets_defects") is None:
        pytest.fail("\n".join(texts), pytrace=False)


@pytest.fixture(autouse=True, scope="session")
def no_terminal_width() -> Iterator[None]:
    """Without COLUMNS, which GNU readline exports to the processes that pytest starts."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("COLUMNS", "LINES"):
            if name in os.environ:
                patch.delenv(name)
        yield


@pytest.fixture
def small(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The path of a file with a small problem, whose text the test's module has as FILE."""
    path = tmp_path / "small.yaml"
    path.write_text(request.module.FILE)
    return str(path)


@pytest.fixture
def cells_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps solve their cells in this process: each of a pool loads the solver, which takes longer than small cells."""
    from solver.sweeps import process_pool, sweep
    from solver.sweeps.executor import InTurn

    for module in (process_pool, sweep):
        monkeypatch.setattr(module, "ProcessPool", lambda _: InTurn(Event()))


@pytest.fixture
def pictures_are_empty() -> Iterator[None]:
    """Pictures become empty files."""
    from tests.support.pictures import empty_pictures

    with empty_pictures():
        yield


# Of CP-SAT's units of work for a second of `--time-limit`.
_WORK = 0.02


@pytest.fixture
def work_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands count work in place of the seconds of `--time-limit`, so that a busy machine changes no answer."""
    from commands.options import search

    def limits(seconds: float, workers: int, seed: int, gap: float) -> Limits:
        return counted(_WORK * seconds, seed=seed, gap=gap)

    monkeypatch.setattr(search, "Limits", limits)


@pytest.fixture
def no_shared_time_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of searches that share a time limit each has its least time, however slow the machine is.

    A share below half of the limit counts as spent.
    """
    monkeypatch.setattr("solver.planning.time_shares.TimeShares.spent", lambda _, share=1: share < 0.5)


# Compiled in one process each, none of what another compiles, for some of the tests and for all of them.
_CALLED_BY_MOST = "search modes", "lists"
_CALLED_BY_ALL = "search modes lists tasks tabu", "diagrams long-diagrams labels beam no-wait"


def pytest_configure(config: pytest.Config) -> None:
    """Read the stored optima; before several workers start, compile what they call: else each would, at the same time."""
    optima.OPTIMA.use(os.environ.get(optima.RECORD))
    if not hasattr(config, "workerinput"):
        config.add_cleanup(forks.shared_by_workers())
    if getattr(config.option, "dist", "no") == "no" or hasattr(config, "workerinput") or config.option.collectonly:
        return
    from solver.engine.kernels import ALL_KERNELS

    paths = {Path(config.invocation_params.dir, one).resolve() for one in config.args}
    every = paths == {ROOT / "tests"} and not config.option.keyword
    rows = _CALLED_BY_ALL if every else _CALLED_BY_MOST
    lacking = [[one.name for one in ALL_KERNELS if one.name in row.split() and not one.mark.exists()] for row in rows]
    commands = [["solver.engine.compile_kernels", *names] for names in lacking if names]
    if every and commands:  # the first run: nor are the tests' own kernels compiled, and their modules for assertions
        commands += [["tests.support.exhaustive"], ["pytest", str(ROOT / "tests"), "--collect-only", "-qq", "-n0"]]
    under_way = [
        subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, stdout=subprocess.DEVNULL) for command in commands
    ]
    for process in under_way:
        process.wait()


# Tests that share something that takes long to make, as PyTorch loaded into the process that runs them. pytest-xdist deals
# tests out in blocks and an idle worker takes from the end of another's: at the start of the first block, no second worker
# makes it too.
_FIRST = (
    "tests/commands/test_bad_input.py",  # `profile` reads its options where PyTorch is loaded
    "tests/pipesched/layers/test_derived_layers.py::test_pytorch_s_checkpoints_stop_early",
    "tests/runtime/exporters/test_torch_reads_csv.py",
    "tests/runtime/megatron/",
    "tests/runtime/partitions/test_megatron_core.py",
    "tests/runtime/profiling/",
    "tests/runtime/pytorch/",
    "tests/runtime/traces/test_torch_profiler.py",
    "tests/test_repository.py::test_pipesched_offers_the_class_of_a_users_model",
    "tests/test_wheel.py",
    "tests/web/test_page_in_browser.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of `_FIRST` before all others."""
    items.sort(key=lambda item: not item.nodeid.startswith(_FIRST))


def pytest_collection_finish() -> None:
    """Refuse tests that load PyTorch where they are collected; what is there before the first test is no garbage."""
    if "torch" in sys.modules and not _TORCH_BEFORE:
        raise pytest.UsageError("a module of tests loads PyTorch, and so every worker does: see tests/support/later.py")
    gc.freeze()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Objectives by their names, which named mutants' tests have."""
    return val.name if isinstance(val, Objective) else None


def pytest_sessionfinish() -> None:
    """Write the optima that a run was started to store."""
    if optima.OPTIMA.record is not None:
        optima.write(more=os.environ[optima.RECORD] == "more")
