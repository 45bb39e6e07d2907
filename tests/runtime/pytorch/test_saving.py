"""Offload and recomputation with torch's stages: processes over gloo, against the whole model in one process."""

from __future__ import annotations

import json
import os
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from commands.shared.file_arguments import write_schedule
from pipesched.files.schedule_file import ScheduleFile
from pipesched.schedule.timeline import Timeline
from runtime.exporters.rank_program import rank_program
from tests.support.later import needs
from tests.support.own_session import waited_for
from tests.support.saving_orders import TIMELINES, named
from tests.support.torch_forks import fork

needs("torch.distributed.pipelining.schedules")

ROOT = Path(__file__).resolve().parents[3]
# Forks a process for each device, of two and then of four: every process runs all cases of as
# many devices, and writes what it found. `Count` is in the graph of each forward: while it is alive and
# what was saved beside it is not on the host, the forward's activation is held.
SCRIPT = """
import json, os, sys, weakref
import torch
import torch.distributed as dist
from torch import nn
import pipesched
import runtime.pytorch.runtime  # once, before the processes are forked
from runtime.execution import program, streams
from runtime.pytorch.passes import activations

def forked(number, port):
    # The rank in one of so many processes; None in the one that started them, when they have ended.
    children = []
    for rank in range(number):
        children.append(os.fork())
        if not children[-1]:
            os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(number)}
            os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            return rank
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(codes):
        sys.exit(f"processes of {number} devices ended with {codes}")


groups = json.load(open(sys.argv[1]))
for number, port in zip(groups, sys.argv[2:], strict=True):
    rank = forked(int(number), port)
    if rank is not None:
        break
else:
    sys.exit()
dist.init_process_group("gloo")
graphs, saves = weakref.WeakSet(), weakref.WeakSet()


class Token:
    pass


class Count(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if any(ctx.needs_input_grad):
            ctx.token = Token()
            graphs.add(ctx.token)
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Stage(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.last, self.drop = nn.Linear(4, 4), nn.Linear(4, 4), nn.Dropout(DROP)

    def forward(self, x):
        return torch.tanh(self.last(Count.apply(self.drop(torch.tanh(self.linear(x))))))


class Watched(activations.Saved):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        saves.add(self)


activations.Saved, own_run = Watched, streams.Streams.run


def run(self, step, start):
    own_run(self, step, start)
    held.append(len(graphs) - sum(bool(one._host) for one in saves))


streams.Streams.run = run


def stages(number):
    torch.manual_seed(0)
    return [Stage().double() for _ in range(number)]


found = {}
for name, case in groups[number].items():
    dist.barrier()
    own, m, total, DROP = case["own"], case["microbatches"], case["stages"], case["drop"]
    x, y = torch.randn(2, 2 * m, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    made = {s: stages(total)[s] for s in own[rank]}
    runtime = pipesched.torch.load(case["path"], made, nn.functional.mse_loss)
    if case["dropped"]:
        own_program = program.program_of
        from runtime.running import job as loading
        loading.program_of = lambda document: own_program(
            document | {"rows": [" ".join(w for w in row.split() if w.split("@")[0].split("!")[0] != case["dropped"])
                .replace("!" + case["dropped"], "") for row in document["rows"]]})
        runtime = pipesched.torch.load(case["path"], made, nn.functional.mse_loss)
        loading.program_of = own_program
    executes = hasattr(runtime, "_executor")
    for _ in range(2):
        held, losses = [], []
        for stage in made.values():
            stage.zero_grad()
        torch.manual_seed(rank)
        if executes:
            runtime.step(x, target=y, losses=losses)
        elif 0 in own[rank]:
            runtime.step(x)
        else:
            runtime.step(target=y, losses=losses) if total - 1 in own[rank] else runtime.step()
    whole = nn.Sequential(*stages(total))
    right = nn.functional.mse_loss(whole(x), y)
    right.backward()
    right = float(right)
    worst = max(
        float((torch.zeros(()) if mine.grad is None else mine.grad).sub(other.grad).norm() / other.grad.norm())
        for s, stage in made.items() for mine, other in zip(stage.parameters(), whole[s].parameters())
    )
    executor = getattr(runtime, "_executor", None)
    found[name] = {
        "worst": worst, "held": held, "executed": executor and executor.executed,
        "moved": executor and executor.moved,
        "loss": abs(float(torch.stack(losses).mean() - right)) if losses else None, "losses": len(losses),
        "gradients": [p.grad.tolist() for s in made.values() for p in s.parameters() if p.grad is not None],
    }
json.dump(found, open(f"{sys.argv[1]}.{number}.{rank}", "w"))
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("saving")
    cases = {name: _case(folder, timeline) for name, timeline in TIMELINES.items()}
    cases["dropout, recomputed"] = cases["recomputed"] | {"drop": 0.5}
    cases["dropout, plain"] = _case(folder, named("1f1b", 4, 4)) | {"drop": 0.5}
    cases["without a W"] = cases["mixed"] | {"dropped": "W0.1"}
    cases["without an R"] = cases["mixed"] | {"dropped": "R1.2"}
    groups = {number: {name: case for name, case in cases.items() if len(case["own"]) == number} for number in (2, 4)}
    (folder / "cases.json").write_text(json.dumps(groups))
    code, said = run(folder, len(groups))
    assert code == 0, said
    found: list[dict[str, Any]] = [{} for _ in range(4)]
    for number in groups:
        for rank in range(number):
            found[rank] |= json.loads((folder / f"cases.json.{number}.{rank}").read_text())
    return found


def _case(folder: Path, timeline: Timeline) -> dict[str, Any]:
    where = timeline.problem.placement
    path = folder / f"{len([*folder.iterdir()])}.json"
    write_schedule(path, ScheduleFile(timeline))
    shape = {"microbatches": timeline.problem.microbatches, "stages": where.stages, "drop": 0.0, "dropped": ""}
    return {"path": str(path), "own": where.stages_of} | shape


def run(folder: Path, groups: int) -> tuple[int, str]:
    """The exit code of the script and what it said; the ports of its groups are free ones."""
    with ExitStack() as stack:
        free = [stack.enter_context(socket.socket()) for _ in range(groups)]
        for one in free:
            one.bind(("127.0.0.1", 0))
        ports = [str(one.getsockname()[1]) for one in free]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    return waited_for(fork(SCRIPT, ["script.py", "cases.json", *ports], folder, environment))


def of(name: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [rank[name] for rank in found if name in rank]


@pytest.mark.parametrize("name", TIMELINES)
def test_every_gradient_and_loss_is_that_of_the_whole_model(name: str, found: list[dict[str, Any]]) -> None:
    ranks = of(name, found)
    assert len(ranks) == TIMELINES[name].problem.devices
    assert max(one["worst"] for one in ranks) < 1e-13
    assert max(one["loss"] for one in ranks if one["losses"]) < 1e-14
    assert max(one["losses"] for one in ranks) == 4


@pytest.mark.parametrize("name", TIMELINES)
def test_the_executed_order_is_the_planned_one(name: str, found: list[dict[str, Any]]) -> None:
    rows = rank_program("test", TIMELINES[name])["rows"]
    assert [" ".join(one["executed"]) for one in of(name, found)] == rows


@pytest.mark.parametrize("name", TIMELINES)
def test_what_is_held_after_each_pass_is_what_was_planned(name: str, found: list[dict[str, Any]]) -> None:
    """Whole activations: from F, or from R where it is recomputed, to the last backward, without the time on the host."""
    timeline = TIMELINES[name]
    for one in of(name, found):
        assert one["held"] == _planned(timeline, one["executed"])
        assert (one["moved"] > 0) == any(word[0] == "O" for word in one["executed"])


def _planned(timeline: Timeline, executed: list[str]) -> list[int]:
    again = {p[1:] for p in timeline.schedule.passes() if p.kind[0] == "R"}
    split = {p[1:] for p in timeline.schedule.passes() if p.kind == "W"}
    planned, now = list[int](), 0
    for word in executed:
        if ":" not in word:
            now += _change(word.split("@")[0].split("!")[0], again, split)
            planned.append(now)
    return planned


def _change(word: str, again: set[Any], split: set[Any]) -> int:
    kind = word.rstrip("0123456789.")
    stage, microbatch = map(int, word[len(kind) :].split("."))
    if kind == "F":
        return (stage, microbatch) not in again
    last = kind in ("BW", "W")
    return {"O": -1, "L": 1}.get(kind, 1 if kind[0] == "R" else -int(last))


def test_a_forward_that_runs_again_draws_the_same_numbers(found: list[dict[str, Any]]) -> None:
    """With dropout, against the same order without recomputation on torch's own runtime."""
    pairs = zip(of("dropout, recomputed", found), of("dropout, plain", found), strict=True)
    for again, plain in pairs:
        assert again["gradients"] and again["gradients"] == plain["gradients"]
    (right,) = (one["worst"] for one in of("dropout, plain", found)[:1])
    assert right > 0.01  # it does drop out


def test_what_is_left_out_is_found(found: list[dict[str, Any]]) -> None:
    """A weight pass by the gradients, a recomputation by what is held."""
    assert of("without a W", found)[0]["worst"] > 0.01
    left_out = of("without an R", found)[1]
    assert left_out["executed"] != rank_program("test", TIMELINES["mixed"])["rows"][1].split()
    assert left_out["held"] != _planned(TIMELINES["mixed"], left_out["executed"])
