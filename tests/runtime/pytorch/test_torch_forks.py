"""If the process that loads PyTorch for tests ends, each of them fails at once with what it printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import torch_forks


def test_an_ended_process_fails_at_once_with_its_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch_forks, "_LOADS", "import sys; sys.exit('no such library')")
    server = torch_forks._server.__wrapped__()
    monkeypatch.setattr(torch_forks, "_server", lambda: server)
    for _ in range(2):  # the first may be asked while it still runs
        with pytest.raises(AssertionError, match="ended with exit code 1:\nno such library"):
            torch_forks.fork("", ["none"], tmp_path, {})
        server.process.wait()
