"""The supervisor.

It loads torch once, forks a process for each device, and ends all when one fails or the parent is gone.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

_POLL = 0.5  # seconds
_GRACE = 1.0  # seconds in which others may say what went wrong with them too


def supervise(folder: Path, devices: int) -> int:
    """Run a worker process for each device on the jobs in `folder`, which `launch` wrote.

    Return 0 if all ended well, 1 if one failed or the parent is gone; then all others are killed. Forking is safe here:
    torch is loaded, but no tensor was made, so neither its threads nor CUDA have started.
    """
    from runtime.pytorch.processes.worker import main as work

    multiprocessing.set_start_method("fork" if sys.platform == "linux" else "spawn")
    parent = os.getppid()
    ranks = [multiprocessing.Process(target=work, args=(folder, rank, devices), daemon=True) for rank in range(devices)]
    for process in ranks:
        process.start()
    try:
        return _watched(folder, ranks, parent)
    finally:
        for process in ranks:
            process.kill()


def _watched(folder: Path, ranks: Sequence[BaseProcess], parent: int) -> int:
    """Return 0 once all processes have ended well, 1 as soon as one has failed or the parent is gone.

    A process that failed without writing a report gets one. Processes that still run are left running.
    """
    while any(process.exitcode is None for process in ranks):
        wait([process.sentinel for process in ranks if process.exitcode is None], timeout=_POLL)
        if any(process.exitcode for process in ranks):
            time.sleep(_GRACE)
            # A process may be seen to have died only after others that failed for want of it.
            for rank, process in enumerate(ranks):
                if process.exitcode and not (folder / f"failed.{rank}").exists():
                    report(folder, rank, f"its process ended with code {process.exitcode}")
            return 1
        if os.getppid() != parent:
            return 1
    return 0


def report(folder: Path, rank: int, text: str) -> None:
    """Pickle the failure of a process that could not report it itself, as the file `failed.RANK` in the folder.

    The file has the form that a worker writes: `bad_input`, here None, and the `text` as a list. An existing file is
    replaced.
    """
    (folder / f"failed.{rank}").write_bytes(pickle.dumps({"bad_input": None, "text": [text]}))


if __name__ == "__main__":
    # Python's own end takes apart all that torch has loaded, for a second.
    done = supervise(Path(sys.argv[1]), int(sys.argv[2]))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(done)
