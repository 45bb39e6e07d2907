"""Runs torchtitan's own trainer with exported schedules on a CPU: losses, gradient norms, and every gradient.

    python -m venv titan && titan/bin/pip install torch==2.14.1 torchtitan==0.3.0
    python -m benchmarks.torchtitan_trainer --python titan/bin/python --write docs/results/torchtitan.md
    python -m benchmarks.torchtitan_trainer --python titan/bin/python --only Interleaved1F1B --profile runs

Four processes over gloo train torchtitan's `llama3_debugmodel` for three steps, in float32: first by its own 1F1B, then
by CSVs of ours, set by the exported flags or by `apply`, and all are compared with it; where a schedule has two devices
FSDP shards each stage over two processes, and torchtitan's 1F1B does so too. Two controls leave the chunked loss to a
last stage whose backwards are split, once with our CSV and once with torchtitan's own schedule. With `--profile`
torchtitan's profiler records the last step of each run, for `pipesched profile --from-trace`.
"""

from __future__ import annotations

import json
import os
import platform
import runpy
import socket
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.reporting.page import exit_code, show, table
from commands.main import main as pipesched

COMMAND = "python -m benchmarks.torchtitan_trainer"
HEAD = ("schedule", "set by", "split backwards", "losses", "gradient norms", "worst gradient", "without a gradient")
RANKS, MICROBATCHES, STEPS = 4, 8, 3
JOB = Path(__file__).parent / "cases" / "torchtitan_job.py"
BASE = (
    f"--training.steps {STEPS} --training.seq_len 32 --training.local_batch_size {MICROBATCHES}"
    " --training.mixed_precision_param float32 --training.disable_cuda_graphs --lr_scheduler.warmup_steps 0"
    " --checkpoint.no-enable --validator.no-enable"
).split()

PROFILED = (
    f"--profiler.enable_profiling --profiler.profile_freq {STEPS} --profiler.profiler_warmup 0"
    " --profiler.profiler_active 1"
).split()


@dataclass(frozen=True)
class Case:
    """A run: torchtitan's schedule by its name, or one of ours, solved with `solve` on a placement."""

    name: str
    own: str = ""
    placement: str = ""
    solve: Sequence[str] = ()
    by: str = "own flags"
    keep_chunks: bool = False
    more: Sequence[str] = ()
    devices: int = RANKS
    times: Mapping[str, float] = field(default_factory=lambda: {"forward": 1, "backward": 1, "weight": 1})


FOR = ("--for", "torchtitan")
NO_CHECKPOINTS = ("activation-checkpoint:none",)
CASES = (
    Case("torchtitan's 1F1B", own="1F1B"),
    Case("linear, fused", placement="linear", by="flags", times={"forward": 1, "backward": 2}),
    Case("linear, last stage whole", placement="linear", solve=FOR, by="flags"),
    Case("linear, all split", placement="linear", by="apply"),
    Case("torchtitan's Interleaved1F1B", own="Interleaved1F1B"),
    Case("interleaved, last stage whole", placement="interleaved", solve=FOR, by="flags"),
    Case("interleaved, all split", placement="interleaved", by="apply"),
    Case("V, last stage whole", placement="v-shape", solve=FOR, by="flags"),
    Case("V, all split", placement="v-shape", by="apply"),
    Case("2 devices, 2 shards each: torchtitan's 1F1B", own="1F1B", devices=2),
    Case("2 devices, 2 shards each: last stage whole", placement="linear", solve=FOR, by="flags", devices=2),
    Case("2 devices, 2 shards each: all split", placement="linear", by="apply", devices=2),
    Case("control: linear, all split, chunked loss", placement="linear", by="apply", keep_chunks=True),
    Case("control: torchtitan's ZBVZeroBubble, chunked loss", own="ZBVZeroBubble", more=NO_CHECKPOINTS),
)

# A step of a run: loss, norm, gradients by parameter, and the parameters that have none.
Step = Mapping[str, Any]


def export(case: Case, folder: Path, seconds: float) -> Mapping[str, Any]:
    """Solves and exports as a user does; what the exported module defines."""
    chunks = {"chunks": 2} if case.placement == "interleaved" else {}
    one = {
        "devices": case.devices,
        "microbatches": MICROBATCHES,
        "placement": case.placement,
        "times": case.times,
        **chunks,
    }
    (folder / "problem.json").write_text(json.dumps(one))
    search = ["--time-limit", str(seconds), "--workers", "1", "-o", str(folder / "solved")]
    solved = pipesched(["solve", str(folder / "problem.json"), *case.solve, *search])
    path = folder / "schedule.torchtitan.py"
    exported = pipesched(
        ["export", str(folder / "solved" / "schedule.json"), "--format", "torchtitan", "-o", str(path)]
    )
    assert solved == exported == 0, case
    return runpy.run_path(str(path))


def run(case: Case, python: str, folder: Path, seconds: float, more: Sequence[str]) -> tuple[list[Step], str]:
    """The steps of a run, gathered from its ranks, and which stages' backwards are split."""
    folder.mkdir(parents=True)
    flags, module, split = [*BASE, *more, "--dump_folder", str(folder / "dump")], None, "none"
    if case.own:
        flags += ["--parallelism.pipeline_parallel_degree", str(case.devices)]
        flags += ["--parallelism.pipeline_parallel_schedule", case.own, *case.more]
        split = "all" if case.own == "ZBVZeroBubble" else "none"
    else:
        exported = export(case, folder, seconds)
        split = ", ".join(map(str, exported["SPLIT_STAGES"])) or "none"
        if case.by == "flags":
            flags += exported["FLAGS"]["0.3.0"].split()
        else:
            module = str(folder / "schedule.torchtitan.py")
    spec = {"flags": flags, "apply": module, "keep_chunks": case.keep_chunks, "result": str(folder)}
    (folder / "spec.json").write_text(json.dumps(spec))
    _processes(python, folder)
    ranks = [torch.load(folder / f"{rank}.pt") for rank in range(RANKS)]
    return [_gathered([steps[number] for steps in ranks]) for number in range(STEPS)], split


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _processes(python: str, folder: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    environment |= {"OMP_NUM_THREADS": "1"} | ({"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {})
    ranks = []
    for rank in range(RANKS):
        own = environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        with (folder / f"log.{rank}").open("w") as log:
            command = [python, str(JOB), "spec.json"]
            ranks.append(subprocess.Popen(command, cwd=folder, env=own, stdout=log, stderr=subprocess.STDOUT))
    codes = [one.wait() for one in ranks]
    if any(codes):
        logs = "\n".join((folder / f"log.{rank}").read_text()[-2000:] for rank in range(RANKS) if codes[rank])
        raise RuntimeError(f"{folder}: torchtitan ended with codes {codes}\n{logs}")


def _gathered(ranks: Sequence[Step]) -> Step:
    """Loss where the last stage is; the norm is of all ranks already."""
    return {
        "loss": max(one["loss"] for one in ranks),
        "norm": ranks[0]["norm"],
        "gradients": {name: one for rank in ranks for name, one in rank["gradients"].items()},
        "missing": [name for rank in ranks for name in rank["missing"]],
    }


def row(case: Case, steps: Sequence[Step], split: str, right: Sequence[Step]) -> list[str]:
    """A run compared with the reference; the worst gradient is relative to its own norm, over all steps."""
    worst, where = 0.0, ""
    for step, other in zip(steps, right, strict=True):
        for name, gradient in step["gradients"].items():
            true = other["gradients"][name]
            off = float((gradient - true).norm() / true.norm())
            if not off <= worst:
                worst, where = off, f" {name}"
    missing = sorted({name for step in steps for name in step["missing"]})
    figures = []
    for key in ("loss", "norm"):
        own, others = (" ".join(f"{step[key]:.6f}" for step in each) for each in (steps, right))
        figures.append("the same" if own == others and steps is not right else own)
    return [case.name, case.by, split, *figures, f"{worst:.1e}{where}", ", ".join(missing) or "none"]


def versions(python: str) -> str:
    """Of torchtitan's environment."""
    code = "from importlib.metadata import version as v; print(v('torchtitan'), 'torch', v('torch'))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    return f"torchtitan {found}, Python {platform.python_version()}, gloo, float32; {RANKS} processes"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all, print, write."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="the Python of an environment with torchtitan")
    parser.add_argument("--seconds", type=float, default=5, help="of each search (default: 5)")
    parser.add_argument("--only", default="", help="of the schedules, besides the first, those whose names hold this")
    parser.add_argument("--profile", type=Path, metavar="DIR", help="keep all runs here, with the profiler's traces")
    parser.add_argument("--write", type=Path, help="the page whose table is replaced")
    args = parser.parse_args(arguments)
    rows, right = list[list[str]](), dict[int, list[Step]]()
    with tempfile.TemporaryDirectory() as name:
        folder, more = (args.profile.resolve(), PROFILED) if args.profile else (Path(name), [])
        for number, case in enumerate(one for one in CASES if args.only in one.name or one.own == "1F1B"):
            steps, split = run(case, args.python, folder / str(number), args.seconds, more)
            rows.append(row(case, steps, split, right.setdefault(case.devices, steps)))
            print(*rows[-1], sep=" | ", file=sys.stderr)
    show(args.write, COMMAND, f"{versions(args.python)}\n\n{table(HEAD, rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
