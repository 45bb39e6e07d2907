"""Launching of one process for each device on this machine, detection of stalls, and collection of results."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pipesched.errors import BadInput, PipeschedError
from runtime.running.heartbeat import BUILDS, FAILED, REFERENCE, STARTS, State, read_state, who_waits
from runtime.running.job import Job, Outcome

_POLL = 0.05  # seconds
_PATIENCE = 180.0  # seconds more for loading torch, or for saying what went wrong


class RunFailed(PipeschedError):
    """A run that stalled or failed; `lines` say which device waits for which, or what failed where."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines: tuple[str, ...] = lines


def launch(jobs: Sequence[Job], timeout: float = 60.0, device: str = "auto") -> list[Outcome]:
    """Run jobs of equal numbers of devices in one group of processes, in turn; return their outcomes in the same order.

    If no process moves on to another pass for `timeout` seconds, once all have loaded torch, the run has stalled.
    Building the model and computing the reference may take any time. `device` is auto, cpu or cuda. Raises `RunFailed`
    if a run stalls or fails, and `BadInput` for what the user can change; no process outlives the call.
    """
    (devices,) = {job.problem.devices for job in jobs}
    with tempfile.TemporaryDirectory(prefix="pipesched-run-") as name:
        folder = Path(name)
        (folder / "jobs").write_bytes(pickle.dumps({"jobs": list(jobs), "timeout": timeout, "device": device}))
        supervisor = _start(folder, devices)
        try:
            _wait(jobs, folder, supervisor, devices, timeout)
        finally:
            _end(supervisor)
        outcomes: list[Outcome] = pickle.loads((folder / "outcomes").read_bytes())
        return outcomes


def _start(folder: Path, devices: int) -> subprocess.Popen[bytes]:
    """Start the supervisor, which starts a process for each device.

    Their output goes to a file, read only after a failure. With -P Python does not look for our modules in the working
    directory, which may have others of the same name. Jobs, states and outcomes are files of `folder`.
    """
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    if sys.platform == "linux":
        environment.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all on this machine, whatever its name resolves to
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "runtime.pytorch.processes.supervisor", str(folder), str(devices)],
            env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def _end(supervisor: subprocess.Popen[bytes]) -> None:
    """End the supervisor and all processes it started, which form one session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(supervisor.pid, signal.SIGKILL)
    supervisor.wait()


def _wait(jobs: Sequence[Job], folder: Path, supervisor: subprocess.Popen[bytes], devices: int, timeout: float) -> None:
    """Wait until all processes have ended well; raise `RunFailed` or `BadInput` as soon as one has failed.

    Raises `RunFailed` too if none has moved on to another pass for `timeout` seconds. Building the model and computing
    the reference do not count; loading torch may take `_PATIENCE` longer. `devices` is the number of processes, which
    write their states to `folder`.
    """
    seen: list[State] = []
    since = time.monotonic()
    while (code := supervisor.poll()) is None:
        states = [read_state(folder / f"state.{rank}") for rank in range(devices)]
        if states != seen or any(state.doing in (BUILDS, REFERENCE) for state in states):
            seen, since = states, time.monotonic()
        elif time.monotonic() - since > timeout + (_PATIENCE if any(map(_is_apart, states)) else 0):
            raise RunFailed(f"stalled: no device has moved on for {timeout:g} s", *who_waits(jobs, states))
        time.sleep(_POLL)
    if code:
        _broken(folder, code)


def _is_apart(state: State) -> bool:
    """Return True for a process that still starts or has failed, which may last longer than a pass."""
    return state.doing in (STARTS, FAILED)


def _broken(folder: Path, code: int) -> None:
    """Raise the `BadInput` of a process that failed by one, else `RunFailed` with the errors of all that failed.

    Errors are in the order of failure, since later ones may fail because of the first. If no process wrote one, the
    message has the last line that they printed, and `code`, the supervisor's exit code.
    """
    failed = sorted(folder.glob("failed.*"), key=lambda path: path.stat().st_mtime_ns)
    reports = [(path.suffix[1:], pickle.loads(path.read_bytes())) for path in failed]
    for _, report in reports:
        if report["bad_input"]:
            raise BadInput(*report["bad_input"])
    alike: dict[tuple[str, ...], list[str]] = {}
    for rank, report in reports:
        alike.setdefault(tuple(report["text"]), []).append(rank)
    lines = [line for text, ranks in alike.items() for line in _failed(sorted(ranks, key=int), text)]
    printed = (folder / "log").read_text(errors="replace").strip().splitlines() or ["it printed nothing"]
    raise RunFailed(*(lines or [f"the processes could not be started (code {code}): {printed[-1]}"]))


def _failed(ranks: Sequence[str], text: Sequence[str]) -> list[str]:
    """Return the lines of a message on ranks that failed with the same error, whose lines are `text`."""
    return [f"device {ranks[0]} failed: {text[0]}", *text[1:], *(f"device {rank} failed alike" for rank in ranks[1:])]
