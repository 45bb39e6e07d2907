"""Signals sent to real processes: SIGTERM and SIGINT end a search with its best schedule written, and leave nothing.

Those whose libraries are loaded when the signal comes are forks of one that has loaded them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import pytest

from commands.shared import termination
from commands.shared.file_arguments import write_schedule
from pipesched.ending_signals import ending_signals
from pipesched.files.schedule_file import ScheduleFile, read_schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import sequential
from tests.support.command_forks import COMMAND, command, forked
from tests.support.daily import daily
from tests.support.forks import Fork
from tests.support.makers import problem

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

# Far from its bound for longer than any test waits.
HARD = """
devices: 6
microbatches: 18
times: {forward: [17.1, 11.3, 13.7, 19.9, 12.1, 18.3], backward: [12.7, 18.9, 11.1, 14.3, 19.1, 13.3], weight: 9.7}
memory: {capacity: 3, activation: 1, freed_by_backward: 0.3}
objective: span
"""


def start(*command: str, folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, *command], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str] | Fork) -> tuple[int, str]:
    _, err = process.communicate(timeout=120)
    return process.returncode, err


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)])
def test_a_search_that_is_ended_writes_its_best_schedule(name: str, code: int, tmp_path: Path) -> None:
    sent = signal.Signals[name]
    (tmp_path / "hard.yaml").write_text(HARD)
    process = command(tmp_path, "solve", "hard.yaml", "-o", "out", "--workers", "1", "--time-limit", "600")
    assert process.stderr is not None
    for line in process.stderr:  # a schedule is known
        if "best" in line:
            break
    process.send_signal(sent)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == code
    assert "interrupted: " in out
    assert not validate(read_schedule(tmp_path / "out" / "schedule.json").timeline)
    assert not list((tmp_path / "out").glob(".*"))


def test_a_terminal_that_is_gone_is_written_to_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    master, terminal = os.openpty()
    pipe = os.pipe()
    monkeypatch.setattr(termination, "_PRINTED", (terminal, pipe[1]))
    for name in ("terminated", "hung_up"):
        monkeypatch.setattr(termination, name, Event())
    os.close(master)
    with pytest.raises(OSError, match="Input/output"):
        os.write(terminal, b"x")
    termination.record(signal.SIGHUP)
    os.write(terminal, b"x")
    os.write(pipe[1], b"to a file or pipe as before")
    assert os.read(pipe[0], 99) == b"to a file or pipe as before"
    assert termination.exit_code(130) == 129
    for each in (terminal, *pipe):
        os.close(each)


def test_nohup_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)
    assert ending_signals() == (signal.SIGINT, signal.SIGTERM)


def test_sigterm_before_there_is_anything_to_write(tmp_path: Path) -> None:
    body = (
        "import sys, time, commands.main as m\n"
        "m.parser = lambda _: type('P', (), {'parse_args': lambda s, a: type('A', (), {'run': lambda s, a: wait()})()})()\n"
        "def wait():\n    print('ready', file=sys.stderr, flush=True)\n    time.sleep(600)\n"
        "sys.exit(m.main([]))"
    )
    process = forked(body, tmp_path)
    assert process.stderr is not None and process.stderr.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    code, err = ended(process)
    assert (code, err) == (143, "pipesched: terminated\n")


IMPORTING = """
import ctypes, sys, commands.main as m
def load(*_):
    print('ready', file=sys.stderr, flush=True)
    try:  # as a compiled library runs Python at its import
        scope = ctypes.py_object({})
        ctypes.pythonapi.PyRun_String(b'import time; time.sleep(600)', 257, scope, scope)
    except KeyboardInterrupt:
        raise ERROR
m.parser = load
m.leave(m.main([]))
"""


@pytest.mark.parametrize(
    ("error", "sent", "code"),
    [("ImportError('initialization failed')", signal.SIGINT, 130), ("KeyboardInterrupt", signal.SIGTERM, 143)],
)
def test_a_signal_while_a_compiled_library_is_imported(
    error: str, sent: signal.Signals, code: int, tmp_path: Path
) -> None:
    process = forked(IMPORTING.replace("ERROR", error), tmp_path)
    assert process.stderr is not None and process.stderr.readline() == "ready\n"
    process.send_signal(sent)
    said = "terminated" if sent is signal.SIGTERM else "interrupted"
    assert ended(process) == (code, f"pipesched: {said}\n")


DISCARDING = """
import ctypes, os, signal, sys, commands.main as m

class Library:
    @property
    def version(self):
        os.kill(os.getpid(), NUMBER)

def lose():
    ctypes.pythonapi.PyObject_HasAttrString(ctypes.py_object(Library()), b"version")

PLACE
m.leave(m.main(["solve", "hard.yaml", "--workers", "1", "--time-limit", "600"]))
"""
CALLBACK = """
import weakref

class Lock:
    pass

def lose():
    lock = Lock()
    freed = weakref.ref(lock, lambda _: os.kill(os.getpid(), NUMBER))
    del lock

found = m.parser; m.parser = lambda words: (lose(), found(words))[1]
"""
# Where the libraries that parsing needs are loaded, those of a command, and those after the last of its steps.
PLACES = {
    "as an import frees its lock": CALLBACK,
    "before the command": "found = m.parser; m.parser = lambda words: (lose(), found(words))[1]",
    "before the search": "import commands.options.search as s; s.stop_event = lambda _: lose()",
    "at the end": "m.parser = lambda _: type('P', (), {'parse_args': lambda s, a: type('A', (), "
    "{'run': lambda s, a: lose() or 0})()})()",
}


@pytest.mark.parametrize(
    ("place", "sent", "code"),
    [
        ("before the command", signal.SIGINT, 130),
        ("as an import frees its lock", signal.SIGINT, 130),
        ("before the search", signal.SIGTERM, 143),
        ("at the end", signal.SIGTERM, 143),
    ],
)
def test_a_signal_whose_exception_is_discarded_ends_the_command(
    place: str, sent: signal.Signals, code: int, tmp_path: Path
) -> None:
    (tmp_path / "hard.yaml").write_text(HARD)
    body = DISCARDING.replace("PLACE", PLACES[place]).replace("NUMBER", str(int(sent)))
    process = forked(body, tmp_path)
    said = "terminated" if sent is signal.SIGTERM else "interrupted"
    assert ended(process) == (code, f"pipesched: {said}\n")


AT_THE_END = """
import builtins, os, signal, sys

class Late:
    def __del__(self, kill=os.kill, process=os.getpid()):
        kill(process, NUMBER)

builtins.late = Late()
sys.argv = ["pipesched", "--version"]
from pipesched.__main__ import main
main()
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_python_ends_changes_no_exit_code(sent: signal.Signals, tmp_path: Path) -> None:
    process = start("-c", AT_THE_END.replace("NUMBER", str(int(sent))), folder=tmp_path)
    assert ended(process) == (0, "")


# The command's handlers are replaced by those before it when the signal comes.
LEAVING = """
import os, signal, commands.main as m
from commands.shared.termination import end
def leaving(*_, **__):
    signal.signal(signal.{0}, end)
    os.kill(os.getpid(), signal.{0})
m.main = leaving
from pipesched.__main__ import main
main()
"""


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_while_the_command_is_left_ends_in_one_line(sent: signal.Signals, code: int, tmp_path: Path) -> None:
    found, err = ended(start("-c", LEAVING.format(sent.name), folder=tmp_path))
    assert found == code
    assert err == f"pipesched: {'interrupted' if sent is signal.SIGINT else 'terminated'}\n"


def test_go_becomes_the_command_so_that_signals_reach_it(tmp_path: Path) -> None:
    body = (
        "import go, sys\n"
        "go.PYTHON = sys.executable\n"
        "go.become('-c', 'import signal, sys, time; signal.signal(signal.SIGINT, lambda *_: sys.exit(7));'\n"
        "          'print(1, file=sys.stderr, flush=True); time.sleep(600)')"
    )
    process = start("-c", body, folder=tmp_path)
    assert process.stderr is not None and process.stderr.readline() == "1\n"
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == 7


def test_a_closed_standard_output_is_said(tmp_path: Path) -> None:
    shell = f"{sys.executable} -m commands.main schedules >&-"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        ["sh", "-c", shell], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr.count("\n")) == (2, 1)


def test_with_standard_error_closed_the_answer_is_the_same(tmp_path: Path) -> None:
    problem = "devices: 2\nmicrobatches: 3\ntimes: {forward: 1, backward: 1}\n"
    (tmp_path / "p.yaml").write_text(problem)
    # A process of its own: modules are imported without standard error too.
    shell = f"{sys.executable} -m commands.main solve p.yaml --time-limit 20 --workers 1 --json 2>&-"
    found = subprocess.run(
        ["sh", "-c", shell], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=False
    )
    assert found.returncode == 0 and b'"status": "optimal"' in found.stdout


def test_a_reader_that_went_away_is_no_error_and_costs_no_file(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("devices: 2\nmicrobatches: 3\ntimes: {forward: 1, backward: 1}\n")
    body = (
        "import io, os, sys\n"
        "read, write = os.pipe()\n"
        "os.close(read)\n"  # before anything is written, however fast this process is
        "os.dup2(write, 1)\n"
        # As Python begins with `-u`.
        "sys.stdout = io.TextIOWrapper(io.FileIO(1, 'w', closefd=False), write_through=True)\n"
        f"{COMMAND}"
    )
    process = forked(body, tmp_path, "solve", "p.yaml", "--time-limit", "20", "--workers", "1", "-o", "out")
    assert process.stderr is not None
    assert "error" not in process.stderr.read().lower() and process.wait(60) == 141
    assert {"schedule.json", "gantt.png", "report.html"} <= {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(("stream", "code"), [(">", 2), ("2>", 0)])
def test_a_full_disk_under_standard_output_or_error_costs_no_file(stream: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("devices: 2\nmicrobatches: 3\ntimes: {forward: 1, backward: 1}\n")
    body = (
        "import os\n"
        f"os.dup2(os.open('/dev/full', os.O_WRONLY), {1 if stream == '>' else 2})\n"
        f"{COMMAND}"
    )  # fmt: skip
    process = forked(body, tmp_path, "solve", "p.yaml", "-o", "out", "--workers", "1", "--time-limit", "5")
    _, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert not validate(read_schedule(tmp_path / "out" / "schedule.json").timeline)
    assert (tmp_path / "out" / "pipesched-manifest.json").exists()
    if code:
        assert err.splitlines()[-1] == "pipesched: cannot write the output: No space left on device"


def test_sigterm_of_run_leaves_no_folder_and_no_process(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    one = problem(2, 4)
    write_schedule(tmp_path / "s.json", ScheduleFile(simulate(one, sequential(one))))
    process = start("-m", "commands.main", "run", "s.json", "--sleep-unit", "5s", folder=tmp_path)
    until = time.monotonic() + 60
    while not list(tmp_path.glob("pipesched-run-*/state.*")) and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 143
    assert not list(tmp_path.glob("pipesched-run-*"))
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in running


@pytest.mark.parametrize("delay", daily([0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.2, 2.5], 3))
def test_ctrl_c_at_any_moment_ends_in_one_line(delay: float, tmp_path: Path) -> None:
    """While libraries are loaded, while the search begins, and later; counted from where our code begins to run."""
    (tmp_path / "hard.yaml").write_text(HARD)
    words = ("-X", "importtime", "-m", "pipesched", "solve", "hard.yaml", "--workers", "1", "--time-limit", "600")
    process = start(*words, folder=tmp_path)
    assert process.stderr is not None
    while "| commands" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in err + out and "Exception" not in err + out
    assert process.returncode == 130
    assert "interrupted" in err + out
