"""What tests share: tables as wide as they need, whatever terminal the tests are started from; a problem file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


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


def pytest_configure(config: pytest.Config) -> None:
    """Before several workers start, compile what all of them call: else each would do so, at the same time."""
    if getattr(config.option, "dist", "no") == "no" or hasattr(config, "workerinput") or config.option.collectonly:
        return
    from solver.engine.kernels import KERNELS, LIST_KERNELS, MODE_KERNELS

    for kernels in (LIST_KERNELS, KERNELS, MODE_KERNELS):
        kernels.begin()
    for kernels in (LIST_KERNELS, KERNELS, MODE_KERNELS):
        kernels.wait(lambda: False)
