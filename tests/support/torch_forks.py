"""Programs in processes forked from one that has loaded PyTorch, which takes three processor seconds.

No tensor is made in that one, so that none of PyTorch's threads has started.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.support.forks import Fork, Server, started

_LOADS = """
import torch.distributed.fsdp
import torch.distributed.pipelining.schedules
import runtime.pytorch.processes.worker
"""


@cache
def _server() -> Server:
    return started(_LOADS, {"OMP_NUM_THREADS": "1"})


def fork(
    code: str, words: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path | None = None
) -> Fork:
    """Run Python code with these words as `sys.argv` in a folder; what it prints goes to the log."""
    return _server().fork(code, words, folder, environment, log)


def supervisor(folder: Path, devices: int) -> Fork:
    """In place of `launch._start`: the supervisor of a run, which has loaded PyTorch."""
    module = "runtime.pytorch.processes.supervisor"
    code = f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    path = os.pathsep.join(each or str(Path.cwd()) for each in sys.path)
    environment = {"GLOO_SOCKET_IFNAME": "lo"} | os.environ | {"PYTHONPATH": path}
    return fork(code, [module, str(folder), str(devices)], Path.cwd(), environment, folder / "log")
