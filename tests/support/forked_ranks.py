"""A program in several processes of PyTorch, forked from one that has loaded it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tests.support.own_session import waited_for
from tests.support.torch_forks import fork

ROOT = Path(__file__).resolve().parents[2]
# No tensor is made before the fork, so that none of PyTorch's threads has started. The store by which ranks find each
# other has a process of its own, as torchrun's has: it takes a free port and says which, so that none else can take it.
_FORKS = """
import os, runpy, signal, sys
import torch

world, program, *arguments = sys.argv[1:]
read, write = os.pipe()
store = os.fork()
if not store:
    served = torch.distributed.TCPStore("127.0.0.1", 0, int(world), is_master=True, wait_for_workers=False)
    os.write(write, str(served.port).encode())
    os.close(write)
    signal.pause()
os.close(write)
found = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.read(read, 16).decode()}
found |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
children = []
for rank in range(int(world)):
    children.append(os.fork())
    if not children[-1]:
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": world} | found
        sys.argv = [program, *arguments]
        runpy.run_path(program, run_name="__main__")
        sys.exit()
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
os.kill(store, signal.SIGTERM)
sys.exit(f"the ranks ended with {codes}" if any(codes) else 0)
"""


def run_ranks(world: int, program: Path, arguments: Sequence[object], folder: Path) -> None:
    """Run the program as `world` ranks over gloo in a folder; AssertionError with their stderr if one fails."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    words = ["ranks", str(world), str(program), *map(str, arguments)]
    code, errors = waited_for(fork(_FORKS, words, folder, environment))
    assert code == 0, errors
