"""From a model to measured steps: profiles a small GPT, solves, runs every schedule; a table of predicted and measured.

    python -m benchmarks.loop --write docs/runtime.md

Linear pipelines cut the model into as many stages as devices, V-shaped ones the same model into twice as many. Each
schedule is run by PyTorch with every gradient checked. `replayed` is the simulator with each pass's own measured time.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put, table
from heuristics.catalogue import HEURISTICS
from pipesched.errors import PipeschedError
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.problem_file import problem_from
from pipesched.measurement.comparison import Comparison, compared
from pipesched.problem import placement
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from runtime.profiling.problem_text import problem_text
from runtime.profiling.profile import Profile, Request
from runtime.pytorch.launch import launch
from runtime.pytorch.profiling.profiler import profile
from runtime.pytorch.run import measured_of
from runtime.running.job import Job, ModelSpec, job_for
from runtime.running.torch_timing import SPLITS, as_run
from solver.limits import Limits
from solver.solve import solve

COMMAND = "python -m benchmarks.loop"
HEAD = (
    "placement",
    "schedule",
    "peak memory, MiB",
    "predicted, ms",
    "replayed, ms",
    "measured, ms",
    "measured to replayed, %",
    "faster than 1F1B: predicted, %",
    "measured, %",
)


@dataclass(frozen=True)
class Row:
    """One schedule: its name in the table, its timeline on the profiled problem, and what came of running it."""

    name: str
    timeline: Timeline
    result: Comparison


def profiled(args: Namespace, where: Placement) -> tuple[Profile, Problem]:
    """The model measured as this placement cuts it."""
    request = Request(
        placement=where,
        options=sizes(args),
        split=args.split,
        dtype=args.dtype,
        seed=args.seed,
        repetitions=args.repetitions,
    )
    found = profile(request)
    text = problem_text(found, f"gpt-{where.name}", args.microbatches, None, "makespan")
    return found, problem_from(read_yaml(text, "profile"), "profile")


def sizes(args: Namespace) -> dict[str, object]:
    """Of the small GPT."""
    names = ("layers", "hidden", "heads", "sequence", "vocabulary", "microbatch_size")
    return {name: getattr(args, name) for name in names}


def timelines(args: Namespace, problem: Problem, published: list[str], like: str) -> Iterator[tuple[str, Timeline]]:
    """The published schedules, ours without a limit on memory, and ours in the memory that `like` takes."""
    for name in published:
        yield name, simulate(problem, HEURISTICS[name].order(problem))
    limits = Limits(seconds=args.seconds, workers=args.workers, seed=args.seed)
    peak = measure(simulate(problem, HEURISTICS[like].order(problem))).peak_memory
    capped = problem.with_room(peak)
    for name, one in (("ours", problem), (f"ours, in the memory of {like}", capped)):
        found = solve(one, limits).timeline
        if found is not None:
            yield name, simulate(problem, found.schedule)


def measured(args: Namespace, name: str, timeline: Timeline) -> Row:
    """Run one schedule, with every gradient checked."""
    like = Job(
        name, timeline.problem, timeline.schedule, (), model=ModelSpec("gpt", sizes(args)),
        split=args.split, dtype=args.dtype, seed=args.seed, steps=args.steps,
    )  # fmt: skip
    job = job_for(timeline, like)
    (outcome,) = launch([job], device="cpu")
    if not outcome.good:
        raise PipeschedError(f"{name}: {'; '.join(outcome.complaints())}")
    trace = replace(measured_of(job, outcome), schedule=name)
    return Row(name, timeline, compared(trace, as_run(timeline.problem, args.split)))


def main() -> int:
    """The loop with what the command line says."""
    args = _arguments()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Profile twice, solve, run; the table printed, and put into a page."""
    named: list[tuple[str, Timeline]] = []
    for where, published in (
        (placement.linear(args.devices), ["1f1b", "zb-h1"]),
        (placement.v_shape(args.devices), ["zbv"]),
    ):
        _, problem = profiled(args, where)
        print(f"{where.name}: profiled", file=sys.stderr)
        named += timelines(args, problem, published, published[-1])
        print(f"{where.name}: solved", file=sys.stderr)
    rows: list[Row] = []
    lines: list[list[str]] = []
    for name, timeline in named:
        rows.append(measured(args, name, timeline))
        lines.append(_line(rows[-1], rows[0].result))
        print(" | ".join(lines[-1]), file=sys.stderr, flush=True)
    text = f"{_described(args)}\n\n{table(HEAD, lines)}"
    print(text)
    if args.write is not None:
        put(args.write, COMMAND, text)
    return 0


def _described(args: Namespace) -> str:
    """On what, and of what."""
    where = f"{machine(args.seed, args.workers)}, torch {torch.__version__}; {args.devices} devices (processes on gloo)"
    how = f"split by {args.split}, {args.dtype}, {args.microbatches} micro-batches, {args.seconds:g} s a solve"
    what = ", ".join(f"{key} {value}" for key, value in sizes(args).items())
    return f"{where}, {how}, {args.steps - 1} steps timed; {what}"


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    for name, default in (("devices", 2), ("microbatches", 8), ("layers", 8), ("hidden", 256), ("heads", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("sequence", 128), ("vocabulary", 512), ("microbatch-size", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("repetitions", 20), ("steps", 9), ("workers", 2), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--split", choices=SPLITS, default="store")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page, docs/runtime.md")
    return parser.parse_args()


def _line(row: Row, base: Comparison) -> list[str]:
    problem, one = row.timeline.problem, row.result
    peak = max(measure(row.timeline).peak_memory) * problem.resolution
    return [
        problem.placement.name,
        row.name,
        f"{float(peak):.1f}",
        *(f"{1000 * seconds:.1f}" for seconds in (one.predicted, one.replayed, one.measured)),
        f"{100 * (one.measured / one.replayed - 1):+.1f}",
        f"{100 * (base.predicted / one.predicted - 1):+.1f}",
        f"{100 * (base.measured / one.measured - 1):+.1f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
