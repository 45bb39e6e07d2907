"""Programs in processes forked from one that has loaded their libraries: loading takes seconds, a fork nearly none.

That one is started when it is first needed, serves all processes that run tests, and ends with the last of these that
has asked it.
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
# Each program is the child of a process that waits for it and writes down its exit code. It ends without taking apart
# what was loaded before the fork, which would copy all of it: up to a processor second each. A request is the length of its
# text, with which come the descriptors of standard output and standard error, and the text; the answer is the number of the
# program's process. The lock, which those who connect hold, keeps the last one's end from crossing with another's beginning.
_SERVER = """
import atexit, fcntl, gc, os, pickle, select, socket, sys, traceback

gc.freeze()  # looking for garbage among what was loaded would copy it too
gc.enable()
door, folder = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
callers = []
while True:
    caller = select.select([door, *callers], (), ())[0][0]
    if caller is door:
        callers.append(door.accept()[0])
        continue
    printed, text, whole = [], b"", False
    try:
        length, printed, *_ = socket.recv_fds(caller, 8, 2)
        expected = int.from_bytes(length, "big")
        while len(text) < expected and (part := caller.recv(1 << 16)):
            text += part
        whole = 0 < expected == len(text)
    except ConnectionResetError:
        pass
    if not whole:  # the caller has ended, perhaps amid a request
        for number in printed:
            os.close(number)
        callers.remove(caller)
        caller.close()
        if callers:
            continue
        try:
            with open(f"{folder}/lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if select.select([door], (), (), 0)[0]:
                    continue
                os.unlink(f"{folder}/door")
        except FileNotFoundError:  # the folder is gone, so nobody else can ask
            pass
        os._exit(0)
    code, words, folder_of_program, environment, ended = pickle.loads(text)
    if not os.fork():
        program = os.fork()
        if not program:
            break
        for number in printed:  # a reader waits until all have closed them
            os.close(number)
        caller.sendall(program.to_bytes(8, "big"))
        for each in (door, *callers):
            each.close()
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
for each in (door, *callers):
    each.close()
os.setsid()
os.chdir(folder_of_program)
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
_SHARED = "PIPESCHED_TEST_FORKS"


class Fork:
    """A program under way, with what tests need of `subprocess.Popen`; it leads a session of its own.

    `stdout` and `stderr` read what it prints where it was started with pipes; else it prints to the log.
    """

    def __init__(self, pid: int, ended: Path, log: Path | None, pipes: Sequence[IO[str]] = ()) -> None:
        self.pid, self._ended, self._log = pid, ended, log
        self.stdout: IO[str] | None
        self.stderr: IO[str] | None
        self.stdout, self.stderr = pipes or (None, None)

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
    """A socket over which a process that has loaded libraries is asked for forks, and the folder of its files."""

    asked: socket.socket
    own: Path

    def fork(
        self, code: str, words: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path | None = None
    ) -> Fork:
        """Run Python code with these words as `sys.argv` in a folder; what it prints goes to the log."""
        ended = self._new()
        log = log or ended.with_name(f"{ended.name}.log")
        with log.open("ab") as file:
            pid = self._ask((code, [*words], str(folder), dict(environment), str(ended)), [file.fileno()] * 2)
        return Fork(pid, ended, log)

    def fork_with_pipes(self, code: str, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Fork:
        """The same, with a pipe each for standard output and standard error."""
        ended, pipes = self._new(), [os.pipe() for _ in range(2)]
        try:
            pid = self._ask((code, [*words], str(folder), dict(environment), str(ended)), [write for _, write in pipes])
        finally:
            for _, write in pipes:
                os.close(write)
        return Fork(pid, ended, None, [open(read, encoding="utf-8") for read, _ in pipes])  # noqa: PTH123

    def _new(self) -> Path:
        return self.own / f"{os.getpid()}-{time.monotonic_ns()}"

    def _ask(self, request: object, printed: Sequence[int]) -> int:
        """Send a request; return the number of the program's process, once it is forked."""
        text = pickle.dumps(request)
        try:
            socket.send_fds(self.asked, [len(text).to_bytes(8, "big")], printed)
            self.asked.sendall(text)
            answer = self.asked.recv(8)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            answer = b""
        assert answer, (
            f"the process that loads libraries does not answer:\n{_errors_in(self.own).read_text(errors='replace')}"
        )
        return int.from_bytes(answer, "big")


def shared_by_workers() -> Callable[[], None]:
    """Make the folder by which all processes that run tests, children of this one, find each other's; return what
    removes it."""
    folder = tempfile.TemporaryDirectory(prefix="pipesched-forks-", ignore_cleanup_errors=True)
    os.environ[_SHARED] = folder.name
    return folder.cleanup


def started(loads: str, variables: Mapping[str, str] | None = None) -> Server:
    """A process that has run this code, whose environment has these variables too; the same one for all who ask."""
    import fcntl  # Windows has none

    own = Path(os.environ[_SHARED]) / sha256(repr((loads, variables)).encode()).hexdigest()[:8]
    own.mkdir(exist_ok=True)
    asked, door = socket.socket(socket.AF_UNIX), str(own / "door")
    asked.settimeout(_FIRST)
    with (own / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            asked.connect(door)
        except (FileNotFoundError, ConnectionRefusedError):
            Path(door).unlink(missing_ok=True)
            with socket.socket(socket.AF_UNIX) as listens, _errors_in(own).open("wb") as errors:
                listens.bind(door)
                listens.listen()
                asked.connect(door)  # first of all, since it ends with the last one connected
                _STARTED.append(_start(loads, variables or {}, own, listens.fileno(), errors))
    return Server(asked, own)


_STARTED: list[subprocess.Popen[bytes]] = []  # nobody waits for them


def _start(
    loads: str, variables: Mapping[str, str], own: Path, listens: int, errors: IO[bytes]
) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | dict(variables)
    command = [sys.executable, "-P", "-c", f"import gc; gc.disable()\n{loads}{_SERVER}", str(listens), str(own)]
    return subprocess.Popen(command, env=environment, pass_fds=[listens], stdin=subprocess.DEVNULL, stderr=errors)


def _errors_in(own: Path) -> Path:
    """The file to which the process that has loaded the libraries writes errors."""
    return own / "errors"
