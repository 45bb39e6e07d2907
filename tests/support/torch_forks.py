"""Programs in processes forked from one that has loaded PyTorch: loading takes three processor seconds, a fork none.

That one is started when it is first needed, and ends with the process that runs the tests. No tensor is made in it, so
that none of PyTorch's threads has started.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Each program is the child of a process that waits for it and writes down its exit code.
_SERVER = """
import os, pickle, socket, sys
import torch.distributed.fsdp
import torch.distributed.pipelining.schedules
import runtime.pytorch.processes.worker

asked = socket.socket(fileno=int(sys.argv[1])).makefile("rb")
while True:
    try:
        code, words, folder, environment, log, ended = pickle.load(asked)
    except EOFError:
        sys.exit()
    if not os.fork():
        program = os.fork()
        if not program:
            break
        with open(f"{ended}.process.part", "w") as file:
            file.write(str(program))
        os.rename(f"{ended}.process.part", f"{ended}.process")
        status = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        with open(f"{ended}.part", "w") as file:
            file.write(str(status))
        os.rename(f"{ended}.part", ended)
        os._exit(0)
    while True:  # those that are done
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                break
        except ChildProcessError:
            break
asked.close()
os.setsid()
os.chdir(folder)
os.environ.clear()
os.environ.update(environment)
sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
for number, (path, how) in enumerate([(os.devnull, os.O_RDONLY), *[(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)] * 2]):
    os.dup2(os.open(path, how), number)
sys.argv = words
exec(compile(code, words[0], "exec"), {"__name__": "__main__"})
"""
_POLL = 0.02  # seconds
_FIRST = 300.0  # seconds until PyTorch is loaded, on the busiest machine


class Fork:
    """A program under way, with what tests need of `subprocess.Popen`; it leads a session of its own."""

    def __init__(self, log: Path, ended: Path, server: _Server) -> None:
        self._log, self._ended = log, ended
        process, until = ended.with_name(f"{ended.name}.process"), time.monotonic() + _FIRST
        while not process.exists():
            assert server.process.poll() is None, server.last_words()
            assert time.monotonic() < until, "the process that has loaded PyTorch forks no other"
            time.sleep(_POLL)
        self.pid = int(process.read_text())

    @property
    def returncode(self) -> int:
        code = self.poll()
        assert code is not None
        return code

    def poll(self) -> int | None:
        return int(self._ended.read_text()) if self._ended.exists() else None

    def wait(self, timeout: float | None = None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() >= until:
                raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
            time.sleep(_POLL)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Nothing apart, and all that it printed."""
        self.wait(timeout)
        return "", self._log.read_text(errors="replace")


@dataclass(frozen=True)
class _Server:
    """The process that has loaded PyTorch, the socket over which forks are asked for, and a folder for what they
    print."""

    process: subprocess.Popen[bytes]
    asked: socket.socket
    own: tempfile.TemporaryDirectory[str]

    def ask(self, request: bytes) -> None:
        try:
            self.asked.sendall(request)
        except BrokenPipeError:
            self.process.wait()
            raise AssertionError(self.last_words()) from None

    def last_words(self) -> str:
        code, errors = self.process.returncode, _errors_in(self.own).read_text(errors="replace")
        return f"the process that loads PyTorch ended with exit code {code}:\n{errors}"


def _errors_in(own: tempfile.TemporaryDirectory[str]) -> Path:
    """The file to which the process that has loaded PyTorch writes errors."""
    return Path(own.name) / "errors"


@cache
def _server() -> _Server:
    here, there = socket.socketpair()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-c", _SERVER, str(there.fileno())]
    own = tempfile.TemporaryDirectory(prefix="pipesched-forks-")
    with _errors_in(own).open("wb") as errors:
        process = subprocess.Popen(
            command, env=environment, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, stderr=errors
        )
    there.close()
    return _Server(process, here, own)


def fork(
    code: str, words: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path | None = None
) -> Fork:
    """Run Python code with these words as `sys.argv` in a folder; what it prints goes to the log."""
    server = _server()
    name = str(time.monotonic_ns())
    log, ended = log or Path(server.own.name) / f"{name}.log", Path(server.own.name) / name
    log.touch()
    server.ask(pickle.dumps((code, [*words], str(folder), dict(environment), str(log), str(ended))))
    return Fork(log, ended, server)


def supervisor(folder: Path, devices: int) -> Fork:
    """In place of `launch._start`: the supervisor of a run, which has loaded PyTorch."""
    module = "runtime.pytorch.processes.supervisor"
    code = f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    path = os.pathsep.join(each or str(Path.cwd()) for each in sys.path)
    environment = {"GLOO_SOCKET_IFNAME": "lo"} | os.environ | {"PYTHONPATH": path}
    return fork(code, [module, str(folder), str(devices)], Path.cwd(), environment, folder / "log")
