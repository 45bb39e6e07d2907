"""`run` as a user types it: output, files, JSON, exit codes, stalls and crashes, with and without torch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands.main import main
from commands.shared.file_arguments import write_schedule
from heuristics.catalogue import HEURISTICS
from pipesched.files.schedule_file import ScheduleFile, read_schedule
from pipesched.measurement.trace import read_measured
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from runtime.pytorch.processes import launch as torch_launch
from runtime.running import heartbeat as torch_status
from tests.support.makers import problem, random_order
from tests.support.own_session import waited_for
from tests.support.saving_orders import TIMELINES
from tests.support.torch_forks import fork, supervisor

ROOT = Path(__file__).resolve().parents[3]
SMALL = ["--hidden", "16", "--heads", "2", "--sequence", "6", "--vocabulary", "24", "--steps", "2", "--device", "cpu"]

# A user's model whose first stage misbehaves in its third forward, in the way that the test fills in.
MODEL = """
import time, torch
from torch import nn
from pipesched import PipelineModel

class Stage(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.number, self.calls = number, 0

    def forward(self, x):
        if self.number == 0 and torch.is_grad_enabled():
            self.calls += 1
            if self.calls == 3:
                {misbehave}
        return self.inner(x)

def make(stages, dtype):
    torch.manual_seed(1)
    data = lambda n: torch.full((2, 4), 0.1 * n, dtype=dtype)
    return PipelineModel([Stage(s).to(dtype) for s in range(stages)], data, data, nn.functional.mse_loss)
"""


def written(folder: Path, one: Problem, order: Schedule) -> str:
    return str(write_schedule(folder / "schedule.json", ScheduleFile(simulate(one, order))))


@pytest.fixture
def schedule_path(tmp_path: Path) -> str:
    one = problem(2, 4, time_unit="ms", times={"forward": 2, "backward": 2, "weight": 1})
    return written(tmp_path, one, HEURISTICS["zb-h1"].order(one))


@pytest.fixture
def torch_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs begin with PyTorch loaded, which takes most of their time."""
    monkeypatch.setattr(torch_launch, "_start", supervisor)


def user_model(folder: Path, monkeypatch: pytest.MonkeyPatch, misbehave: str) -> None:
    (folder / "their_model.py").write_text(MODEL.format(misbehave=misbehave))
    monkeypatch.chdir(folder)


@pytest.mark.usefixtures("torch_is_loaded")
def test_a_run_prints_and_writes_predicted_and_measured(
    schedule_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch.distributed.pipelining.schedules")
    user_model(tmp_path, monkeypatch, "pass")
    out = tmp_path / "out"
    arguments = ["--model", "their_model:make", "--split", "store", "--device", "cpu", "-o", str(out), "--json"]
    assert main(["run", schedule_path, *arguments]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["good"]
    assert document["complaints"] == document["missing"] == []
    assert document["gradients_compared"] == 2 * 2 * 2  # steps, stages, parameters
    assert document["worst_gradient"]["fits"]
    assert len(document["passes"]) == 2 * 4 * 3
    timeline = read_schedule(schedule_path).timeline
    assert document["predicted"]["makespan"] == max(map(timeline.end, timeline.schedule.passes())) == 23
    measured = read_measured(out / "measured.json")
    assert len(measured.steps) == 3  # of four, the first one warms up
    assert min(measured.makespans) == document["measured"]["makespan"] > 0
    assert measured.versions["torch"].startswith("2.")
    assert (out / "measured.png").read_bytes().startswith(b"\x89PNG")
    assert document["files"] == [str(out / "measured.json"), str(out / "measured.png")]
    entries = json.loads((out / "pipesched-manifest.json").read_text())["files"]
    assert {name: entry["command"] for name, entry in entries.items()} == {
        "measured.json": "run",
        "measured.png": "run",
    }
    for device, row in enumerate(measured.best):
        assert all(before.end <= after.start for before, after in pairwise(row)), device


@pytest.mark.usefixtures("torch_is_loaded")
def test_copies_and_recomputation_run_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every pass of every stream is timed, and what was measured is read back."""
    pytest.importorskip("torch.distributed.pipelining.schedules")
    timeline, out = TIMELINES["mixed"], tmp_path / "out"
    path = written(tmp_path, timeline.problem, timeline.schedule)
    assert main(["run", path, *SMALL, "-o", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["good"]
    assert document["gradients_compared"] > 0
    names = [str(p) for p in timeline.schedule.passes()]
    assert sorted(one["pass"] for one in document["passes"]) == sorted(names)
    assert {"O0.0", "L0.0", "R0.1", "R1.2"} < set(names)
    measured = read_measured(out / "measured.json")
    assert sorted(map(str, measured.seconds)) == sorted(names)
    assert (out / "measured.png").read_bytes().startswith(b"\x89PNG")
    assert main(["run", path, "--sleep"]) == 2
    assert "--sleep: found offload or recomputation" in capsys.readouterr().err


@pytest.mark.usefixtures("torch_is_loaded")
@pytest.mark.parametrize(
    ("misbehave", "seconds", "said"),
    [
        (
            "open('asleep', 'w').close(); time.sleep(600)",
            "2",
            ["stalled: no device has moved on for 2 s", r"device 0 is still in F0\.\d", r"device 1 waits for F0\.(\d) of device 0, to run F1\.\1"],
        ),
        (
            "raise ValueError('no third time')",
            "60",
            ["device 0 failed: ValueError: no third time", r"their_model\.py, line \d+, in forward: raise ValueError"],
        ),
        ("import os; os._exit(7)", "60", ["device 0 failed: its process ended with code 7"]),
    ],
    ids=["stalls", "raises", "dies"],
)  # fmt: skip
def test_a_run_that_does_not_end_says_who_waits_for_whom(
    misbehave: str, seconds: str, said: list[str], schedule_path: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    pytest.importorskip("torch.distributed.pipelining.schedules")
    user_model(tmp_path, monkeypatch, misbehave)
    if "asleep" in misbehave:
        clock_from_the_stall(tmp_path / "asleep", monkeypatch)
    assert main(["run", schedule_path, "--model", "their_model:make", "--device", "cpu", "--timeout", seconds]) == 1
    complaints = capsys.readouterr().err
    for line in said:
        assert re.search(line, complaints), complaints


def clock_from_the_stall(asleep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of stalls stands until device 0 is asleep and device 1 waits, as a slow machine may stall before."""
    read, states, began = torch_launch.read_state, dict[str, torch_status.State](), list[float]()

    def read_state(path: Path) -> torch_status.State:
        states[path.name] = read(path)
        return states[path.name]

    def monotonic() -> float:
        if not began and asleep.exists() and states["state.1"].doing == torch_status.WAITS:
            began.append(time.monotonic())
        return time.monotonic() - began[0] if began else 0.0

    monkeypatch.setattr(torch_launch, "read_state", read_state)
    monkeypatch.setattr(torch_launch, "time", SimpleNamespace(monotonic=monotonic, sleep=time.sleep))


class Supervisor:
    """Ends well after some looks at it."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def poll(self) -> int | None:
        self.looks -= 1
        return None if self.looks else 0


@pytest.mark.parametrize("slow", [torch_status.BUILDS, torch_status.REFERENCE])
def test_the_user_s_model_and_the_reference_may_take_longer_than_the_time_limit(slow: str, tmp_path: Path) -> None:
    for rank, doing in enumerate([slow, "waits for the others to start a step"]):
        torch_status.Heartbeat(tmp_path / f"state.{rank}").tell(doing)
    torch_launch._wait([], tmp_path, Supervisor(8), 2, 0.1)  # type: ignore[arg-type]
    torch_status.Heartbeat(tmp_path / "state.0").tell("joins the others")
    with pytest.raises(torch_launch.RunFailed, match=r"no device has moved on for 0\.1 s"):
        torch_launch._wait([], tmp_path, Supervisor(8), 2, 0.1)  # type: ignore[arg-type]


# torchrun, whose ranks are forks, since PyTorch is loaded, and no new processes; their output goes to a file.
TORCHRUN = """
import os, runpy, sys
from torch.distributed import run
from torch.distributed.launcher.api import elastic_launch

os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT), 1)


def rank(*words):
    sys.argv = ["pipesched", *words[words.index("pipesched") + 1:]]
    try:
        runpy.run_module("pipesched", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        sys.stdout.flush()
        assert not end.code, end.code


def forks(config, entrypoint):
    config.start_method = "fork"
    return elastic_launch(config, rank)


run.elastic_launch = forks
run.main()
"""


def test_the_same_entry_runs_under_torchrun(tmp_path: Path) -> None:
    pytest.importorskip("torch.distributed.pipelining.schedules")
    from random import Random

    one = problem(2, 4, placement="v-shape")
    path = written(tmp_path, one, random_order(one, Random(4)))
    command = [
        "torchrun", "--standalone", "--nproc-per-node", "2", "-m", "pipesched", "run", path, *SMALL,
        "--dtype", "bfloat16", "--lowering", "torch", "--json",
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    code, said = waited_for(fork(TORCHRUN, command, tmp_path, environment))
    assert code == 0, said
    document = json.loads((tmp_path / "said").read_text())  # one object, from the first rank only
    assert document["good"]
    assert (document["dtype"], document["lowering"]) == ("bfloat16", "torch")
    assert document["gradients_compared"] > 0


def test_everything_else_works_without_torch(schedule_path: str) -> None:
    script = (
        "import sys\n"
        "sys.modules['torch'] = None  # importing it now fails\n"
        "from commands.main import main\n"
        "path = sys.argv[1]\n"
        "assert main(['schedules']) == 0\n"
        "assert main(['validate', path]) == 0\n"
        "assert main(['export', path, '--format', 'torch-csv']) == 0\n"
        "sys.exit(main(['run', path]))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script, schedule_path], cwd=ROOT, capture_output=True, text=True, env=environment, check=False)  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].endswith("-m pip install 'pipesched[torch]'")
