"""Profiling a model: what passes compute, take and give back, against PyTorch itself and the written problem's model."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from commands.main import main
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.problem_file import problem_from, read_problem
from pipesched.problem import placement
from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import schedule_of
from pipesched.simulation.simulator import simulate
from runtime.profiling.problem_text import MIB, problem_text
from runtime.profiling.profile import KINDS, Profile, Request, Samples
from tests.support.forks import ROOT
from tests.support.later import later
from tests.support.own_session import waited_for
from tests.support.torch_forks import fork

torch = later("torch")
chains, memory_meter, stage_bench, stage_passes = (
    later(f"runtime.pytorch.profiling.{name}", "torch")
    for name in ("chain", "memory_meter", "stage_bench", "stage_passes")
)
SIZES = {"hidden": 48, "heads": 4, "sequence": 24, "vocabulary": 96, "microbatch_size": 3}
SPLITS = ["autograd", "store"]
WAYS = [("autograd", False), ("autograd", True), ("store", False), ("store", True)]
ROUNDED = 2 / 1000  # MiB: two amounts, each rounded up to a thousandth


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors: threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def request_of(split: str, stages: int = 3, **keys: Any) -> Request:
    return Request(placement.linear(stages), options=SIZES, split=split, **keys)


def bench(request: Request, stage: int) -> Any:
    return chains.bench_of(request, chains.build_chain(request, torch.device("cpu")), stage, torch.device("cpu"))


@cache
def measured_alone(split: str, checkpoints: bool = False) -> tuple[Profile, Problem]:
    """The profile of three stages measured in this process, and the problem written of it."""
    request, stages = request_of(split, checkpoints=checkpoints), []
    for stage in range(request.depth):
        *_, one = stage_bench.profiled(bench(request, stage), 1, 2, 0)
        assert one is not None
        stages.append(one)
    links = (Samples((0.001,)),) * (request.depth - 1)
    found = Profile(request, tuple(stages), (*links, Samples((0.0,))))
    return found, problem_from(read_yaml(problem_text(found, "measured", 4, None, "makespan"), "test"), "test")


def mib(one: Problem, change: int) -> float:
    return float(change * one.resolution)


@pytest.mark.parametrize(("split", "checkpoints"), WAYS)
def test_every_pass_takes_and_gives_what_the_written_problem_says(split: str, checkpoints: bool) -> None:
    found, one = measured_alone(split, checkpoints)
    for number, stage in enumerate(found.stages):
        assert stage.memory[F] > 0
        for kind in KINDS:
            change = mib(one, sum(one.network.change[kind, number]))
            assert change == pytest.approx(stage.memory[kind] / MIB, abs=ROUNDED), f"{kind} of stage {number}"
        assert stage.memory[F] + stage.memory[BW] == 0
        assert stage.memory[F] + stage.memory[B] + stage.memory[W] == 0


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("stage", [0, 1, 2])
@pytest.mark.parametrize(
    "kinds",
    [
        [F, F, F, B, B, B, W, W, W],
        [F, F, B, W, F, B, B, W, W],
        [F, F, BW, F, B, BW, W],
    ],
)
def test_several_microbatches_hold_what_the_simulator_says(split: str, stage: int, kinds: list[PassKind]) -> None:
    """Measured level after every pass of one stage, and the most of them, against the written problem's."""
    request = request_of(split)
    _, one = measured_alone(split)
    order = numbered(kinds)
    alone = problem_from(
        {
            "devices": 1,
            "microbatches": 3,
            "times": {"forward": 1, "backward": 1, "weight": 1},
            "memory": {
                "activation": mib(one, one.stages[stage].activation),
                "freed_by_backward": mib(one, one.stages[stage].freed),
            },
        },
        "test",
    )
    ready = bench(request, stage)
    ready.timed()
    expected = peak = 0
    with ready.meter() as meter:
        before = meter.in_use()
        for p in order:
            ready.run(p.kind, p.microbatch)
            expected += alone.network.change[p.kind, p.stage].total
            level = meter.in_use() - before
            peak = max(peak, level)
            assert mib(alone, expected) == pytest.approx(level / MIB, abs=3 * ROUNDED), p
        assert meter.in_use() == before
    (planned,) = measure(simulate(alone, schedule_of([order]))).peak_quanta
    assert mib(alone, planned) == pytest.approx(peak / MIB, abs=3 * ROUNDED)


def numbered(kinds: list[PassKind]) -> list[Pass]:
    """Each pass of the micro-batch that comes next for its kind; a fused backward is of the oldest one without."""
    seen: dict[PassKind, int] = {F: 0, B: 0, W: 0}
    todo: list[int] = []
    passes = []
    for kind in kinds:
        if kind is F:
            todo.append(seen[F])
            seen[F] += 1
            passes.append(Pass(F, 0, todo[-1]))
        elif kind is W:
            passes.append(
                Pass(W, 0, next(p.microbatch for p in passes if p.kind is B and Pass(W, 0, p[2]) not in passes))
            )
        else:
            passes.append(Pass(kind, 0, todo.pop(0)))
    return passes


@pytest.mark.parametrize(("split", "checkpoints"), WAYS)
@pytest.mark.parametrize("fused", [False, True])
def test_the_passes_compute_the_gradients_that_autograd_does(split: str, fused: bool, checkpoints: bool) -> None:
    request = request_of(split, dtype="float64", checkpoints=checkpoints)
    for number in range(3):
        chain = chains.build_chain(request, torch.device("cpu"))
        alone = chains.build_chain(request, torch.device("cpu"))
        ready = chains.bench_of(request, chain, number, torch.device("cpu"))
        for kind in (F, BW) if fused else (F, B, W):
            ready.run(kind, 0)
        stage = alone.model.stages[number]
        output = stage(alone.inputs[number])
        result = alone.model.loss(output, alone.model.targets(0)) if number == 2 else output
        torch.autograd.backward(result, alone.gradients[number])
        found = [p.grad for p in chain.model.stages[number].parameters()]
        expected = [p.grad for p in stage.parameters()]
        assert len(found) == len(expected) > 5
        for a, b in zip(found, expected, strict=True):
            assert a is not None
            assert b is not None
            assert (a - b).abs().max() <= 1e-12


def test_a_linear_layer_takes_the_bytes_that_pencil_and_paper_give() -> None:
    rows, into, out, size = 5, 8, 16, 4
    module, store = stage_passes.prepared(
        torch.nn.Sequential(torch.nn.Linear(into, out)), torch.device("cpu"), "autograd", False
    )
    ready = stage_bench.StageBench(module, torch.randn(rows, into), torch.randn(rows, out), False, None, store)
    ready.timed()
    taken, _ = ready.memory()
    output, input_gradient = rows * out * size, rows * into * size
    # B keeps output and graph, and the gradient of the input until its micro-batch is done.
    assert taken == {F: output, B: input_gradient, W: -output - input_gradient, BW: -output}


def test_live_storages_are_counted_once_and_until_they_die() -> None:
    before = torch.zeros(100)
    with memory_meter.LiveStorages([before]) as meter:
        old = before.view(10, 10)
        a = torch.zeros(1000)
        b = a.view(10, 100)
        assert meter.in_use() == 4000
        del a
        assert meter.in_use() == 4000
        meter.reset_peak()
        c = torch.ones(500) + 1  # the ones die
        assert (meter.in_use(), meter.peak()) == (6000, 8000)
        del b, c
        assert meter.in_use() == 0
        assert old.sum() == 0


# The processes of a profile are forks, since PyTorch is loaded; another test starts those that begin anew.
FORKS = """
import sys
import runtime.pytorch.profiling.processes as processes
from commands.main import main

start = processes.start_processes
processes.start_processes = lambda *work, **options: start(*work, **options | {"start_method": "fork"})
sys.exit(main())
"""


def test_profile_writes_a_problem_that_solve_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The two processes of a pipeline of two devices, with the transfer between them."""
    path = tmp_path / "gpt.yaml"
    sizes = ["--hidden", "32", "--sequence", "16", "--layers", "3", "--dtype", "float32"]
    counts = ["--repetitions", "3", "--warm-up", "1", "--microbatches", "6"]
    words = ["pipesched", "profile", *sizes, *counts, "--capacity", "64", "-o", str(path)]
    code, said = waited_for(fork(FORKS, words, tmp_path, os.environ | {"PYTHONPATH": str(ROOT)}))
    assert code == 0, said
    assert "transfer of" in said
    one = read_problem(path)
    assert (one.name, one.devices, one.microbatches, one.time_unit, one.memory_unit) == ("gpt", 2, 6, "ms", "MiB")
    assert one.stages[0].backward == 0
    assert min(stage.forward for stage in one.stages) > 0
    assert one.stages[0].transfer > 0
    assert one.stages[1].transfer == 0
    assert one.stages[1].freed < 0
    assert [float(c * one.resolution) for c in one.room if c is not None] == [64, 64]
    text = path.read_text()
    for word in ("# torch: ", "# threads: ", "# processors: ", "split of the backward: autograd", "stage 1: F "):
        assert word in text
    assert main(["solve", str(path), "--workers", "1", "--time-limit", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] > 0


OWN_MODEL = """
import torch
from pipesched import PipelineModel

def make(stages, dtype=torch.float32):
    made = [torch.nn.Sequential(torch.nn.Linear(8, 8)).to(dtype) for _ in range(stages)]
    return PipelineModel(made, lambda n: torch.ones(4, 8, dtype=dtype), lambda n: torch.zeros(4, 8, dtype=dtype),
                         torch.nn.functional.mse_loss)
"""


def test_profile_measures_the_users_own_stages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_pipeline.py").write_text(OWN_MODEL)
    monkeypatch.chdir(tmp_path)
    flags = [
        "--placement", "v-shape", "--split", "store", "--transfer", "1.5", "--repetitions", "2", "--warm-up", "1",
        "-o", "own.yaml",
    ]  # fmt: skip
    assert main(["profile", "--model", "own_pipeline:make", *flags, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["stages"]) == 4
    assert found["stages"][0]["parameters"] == 2 * (64 + 8) * 8
    one = read_problem("own.yaml")
    assert one.placement.stage_device == (0, 1, 1, 0)
    assert [one.in_units(t) for t in (stage.transfer for stage in one.stages)] == [1.5, 1.5, 1.5, 0]


def test_without_a_gpu_none_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert main(["profile", "--device", "cuda"]) == 2
    assert "--device: found cuda" in capsys.readouterr().err
