"""Programs in processes forked from one that has loaded their libraries: loading takes seconds, a fork nearly none.

That one is started when it is first needed, and ends with the process that runs the tests.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
# Each program is the child of a process that waits for it and writes down its exit code. It ends without taking apart
# what was loaded before the fork, which would copy all of it: up to a processor second each. A request is the length of its
# text, with which come the descriptors of standard output and standard error, and the text.
_SERVER = """
import atexit, os, pickle, socket, sys, traceback

asked = socket.socket(fileno=int(sys.argv[1]))
while True:
    length, printed, *_ = socket.recv_fds(asked, 8, 2)
    if not length:
        sys.exit()
    text = b""
    while len(text) < int.from_bytes(length, "big"):
        text += asked.recv(1 << 16)
    code, words, folder, environment, ended = pickle.loads(text)
    if not os.fork():
        program = os.fork()
        if not program:
            break
        for number in printed:  # a reader waits until all have closed them
            os.close(number)
        with open(f"{ended}.process.part", "w") as file:
            file.write(str(program))
        os.rename(f"{ended}.process.part", f"{ended}.process")
        status = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        with open(f"{ended}.part", "w") as file:
            file.write(str(status))
        os.rename(f"{ended}.part", ended)
        os._exit(0)
    for number in printed:
        os.close(number)
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
for number, own in enumerate((os.open(os.devnull, os.O_RDONLY), *printed)):
    os.dup2(own, number)
    os.close(own)
sys.argv = words
status = 0
try:
    exec(compile(code, words[0], "exec"), {"__name__": "__main__"})
except SystemExit as end:
    status = end.code if isinstance(end.code, int) else int(end.code is not None)
    if status and status is not end.code:
        print(end.code, file=sys.stderr)
except BaseException:
    status = 1
    traceback.print_exc()
atexit._run_exitfuncs()
for each in (sys.stdout, sys.stderr):
    if each is not None:
        each.flush()
os._exit(status)
"""
_POLL = 0.02  # seconds
_FIRST = 300.0  # seconds until the libraries are loaded, on the busiest machine


class Fork:
    """A program under way, with what tests need of `subprocess.Popen`; it leads a session of its own.

    `stdout` and `stderr` read what it prints where it was started with pipes; else it prints to the log.
    """

    def __init__(self, ended: Path, server: Server, log: Path | None, pipes: Sequence[IO[str]] = ()) -> None:
        self._ended, self._log = ended, log
        self.stdout: IO[str] | None
        self.stderr: IO[str] | None
        self.stdout, self.stderr = pipes or (None, None)
        process, until = ended.with_name(f"{ended.name}.process"), time.monotonic() + _FIRST
        while not process.exists():
            assert server.process.poll() is None, server.last_words()
            assert time.monotonic() < until, "the process that has loaded the libraries forks no other"
            time.sleep(_POLL)
        self.pid = int(process.read_text())

    @property
    def returncode(self) -> int:
        code = self.poll()
        assert code is not None
        return code

    def poll(self) -> int | None:
        return int(self._ended.read_text()) if self._ended.exists() else None

    def send_signal(self, sent: signal.Signals) -> None:
        os.kill(self.pid, sent)

    def wait(self, timeout: float | None = None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() >= until:
                raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
            time.sleep(_POLL)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return the texts of both pipes, once it has ended; they must be short, since nobody reads them before.

        Without pipes, nothing and the log.
        """
        if self.stdout is None or self.stderr is None:
            self.wait(timeout)
            return "", self._log.read_text(errors="replace") if self._log else ""
        with self.stdout, self.stderr:
            self.wait(timeout)
            return self.stdout.read(), self.stderr.read()


@dataclass(frozen=True)
class Server:
    """The process that has loaded the libraries, the socket over which forks are asked for, and a folder of its own."""

    process: subprocess.Popen[bytes]
    asked: socket.socket
    own: tempfile.TemporaryDirectory[str]

    def fork(
        self, code: str, words: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path | None = None
    ) -> Fork:
        """Run Python code with these words as `sys.argv` in a folder; what it prints goes to the log."""
        ended = self._new()
        log = log or ended.with_name(f"{ended.name}.log")
        with log.open("ab") as file:
            self._ask((code, [*words], str(folder), dict(environment), str(ended)), [file.fileno()] * 2)
        return Fork(ended, self, log)

    def fork_with_pipes(self, code: str, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Fork:
        """The same, with a pipe each for standard output and standard error."""
        ended, pipes = self._new(), [os.pipe() for _ in range(2)]
        self._ask((code, [*words], str(folder), dict(environment), str(ended)), [write for _, write in pipes])
        for _, write in pipes:
            os.close(write)
        return Fork(ended, self, None, [open(read, encoding="utf-8") for read, _ in pipes])  # noqa: PTH123

    def last_words(self) -> str:
        code, errors = self.process.returncode, _errors_in(self.own).read_text(errors="replace")
        return f"the process that loads libraries ended with exit code {code}:\n{errors}"

    def _new(self) -> Path:
        return Path(self.own.name) / str(time.monotonic_ns())

    def _ask(self, request: object, printed: Sequence[int]) -> None:
        text = pickle.dumps(request)
        try:
            socket.send_fds(self.asked, [len(text).to_bytes(8, "big")], printed)
            self.asked.sendall(text)
        except BrokenPipeError:
            self.process.wait()
            raise AssertionError(self.last_words()) from None


def started(loads: str, variables: Mapping[str, str] | None = None) -> Server:
    """A process that has run this code, whose environment has these variables too."""
    here, there = socket.socketpair()
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | dict(variables or {})
    command = [sys.executable, "-P", "-c", loads + _SERVER, str(there.fileno())]
    own = tempfile.TemporaryDirectory(prefix="pipesched-forks-")
    with _errors_in(own).open("wb") as errors:
        process = subprocess.Popen(
            command, env=environment, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, stderr=errors
        )
    there.close()
    return Server(process, here, own)


def _errors_in(own: tempfile.TemporaryDirectory[str]) -> Path:
    """The file to which the process that has loaded the libraries writes errors."""
    return Path(own.name) / "errors"
