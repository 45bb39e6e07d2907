"""The command `run`: executes a schedule file with PyTorch, checks gradients, compares times with the prediction."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from commands.options.model import add_model, sizes_of
from commands.reports.measured.run import RunReport
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.output import complain, files_written, note, write_json
from commands.shared.output_folder import record_output
from pipesched.errors import BadInput
from pipesched.files.atomic_write import make_folder, write_whole
from pipesched.files.schedule_file import read_schedule
from pipesched.measurement.trace import to_text
from pipesched.problem.units import seconds_in
from pipesched.schedule.timeline import Timeline
from plots.measured import render_both
from runtime.pytorch.processes.launch import RunFailed
from runtime.pytorch.run import execute, measured_of, need_torch
from runtime.running.job import DTYPES, Job, ModelSpec, job_for, saves
from runtime.running.torch_timing import SPLITS, predicted

_LOWERINGS = ("comms", "torch")
_SHORTEST = 0.04  # seconds: the shortest pass of sleeping stages, long compared with what the runtime itself takes


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: schedule file, model, backend, lowering, method of running, output folder, `--json`."""
    parser.add_argument("schedule", metavar="SCHEDULE", help="schedule file (JSON)")
    parser.add_argument("--backend", choices=["torch"], default="torch", help="the runtime (default: torch)")
    model = add_model(parser)
    model.add_argument("--sleep", action="store_true", help="stages that sleep for exactly the file's times")
    model.add_argument("--sleep-unit", metavar="TIME", help="how long one unit of time then lasts: 20ms, 0.5s")
    parser.add_argument("--split", choices=SPLITS, default="autograd", help="who splits a backward (default: autograd)")
    parser.add_argument(
        "--lowering",
        choices=_LOWERINGS,
        default="comms",
        help="who places sends and receives: our plan (comms, the default), or torch",
    )
    parser.add_argument(
        "--dtype", choices=DTYPES, default="float64", help="type of parameters and data (default: float64)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of parameters and data (default: 0)")
    parser.add_argument("--steps", type=int, default=4, metavar="N", help="steps to time; two are checked (default: 4)")
    parser.add_argument(
        "--device", choices=["auto", "cpu", "cuda"], default="auto", help="where to run (default: GPUs if enough)"
    )
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="S", help="seconds without progress (default: 60)"
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="write measured.json and measured.png")
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Execute the schedule and compare it with the prediction.

    Prints the comparison, and writes trace and picture if `-o` names a folder. Exit code 1 if the run failed, was
    refused or has complaints. Of torchrun's ranks only the first reports; the others return `Exit.DONE`. `BadInput` for
    a schedule that cannot be executed.
    """
    need_torch()
    timeline = read_schedule(args.schedule).timeline
    network = timeline.problem.network
    if network.has_arcs_between_chains or not (network.one_task_each or network.has_activation_modes):
        raise BadInput(f"{args.schedule}: found {network.multi_task_feature}; allowed: passes that are single tasks")
    job = job_for(timeline, _options(args, timeline))
    folder = make_folder(args.output) if args.output else None
    try:
        outcome = execute(job, args.timeout, args.device)
    except RunFailed as failed:
        for line in failed.lines:
            complain(line)
        if folder:
            record_output(folder, "run", [])
        return Exit.NO
    if outcome is None:  # not the first of torchrun's ranks
        return Exit.DONE
    if outcome.refused is not None:
        complain(outcome.complaints()[0])
        if folder:
            record_output(folder, "run", [])
        return Exit.NO
    plan = predicted(job.problem, job.schedule, job.split, transfers=not job.seconds_per_tick)
    report = RunReport(job, plan, outcome, measured_of(job, outcome))
    files = _write(report, folder) if folder else []
    if folder:
        record_output(folder, "run", files)
    if outcome.random:
        stages = ", ".join(map(str, outcome.random))
        note(
            f"note: stage {stages} draws random numbers in its forward (dropout): each forward was seeded by stage and"
            " micro-batch, here and in the reference, so that both draw the same"
        )
    if args.json:
        write_json(report.document(files))
    else:
        report.show()
        files_written(files)
    for line in outcome.complaints():
        complain(line)
    return Exit.DONE if outcome.good else Exit.NO


def _options(args: Namespace, timeline: Timeline) -> Job:
    """Return the job that the options describe: the schedule, the model, the method of running it, and the steps.

    `BadInput` if the model that sleeps would have to offload or recompute.
    """
    sizes = sizes_of(args)
    _check(args, sizes)
    name = "sleep" if args.sleep or args.sleep_unit else args.model or "gpt"
    if name == "sleep" and saves(timeline.schedule):
        raise BadInput("--sleep: found offload or recomputation; allowed with it: a model that computes")
    plain = Job("", timeline.problem, timeline.schedule, ())
    return replace(
        plain,
        model=ModelSpec(name, sizes),
        comms=args.lowering == "comms",
        split=args.split,
        dtype=args.dtype,
        seed=args.seed,
        steps=args.steps,
        seconds_per_tick=_seconds_per_tick(args, timeline) if name == "sleep" else 0.0,
    )


def _check(args: Namespace, sizes: dict[str, int]) -> None:
    mistakes = [f"--{name.replace('_', '-')}: found {n}; allowed: at least 1" for name, n in sizes.items() if n < 1]
    if args.steps < 2:
        mistakes.append(f"--steps: found {args.steps}; allowed: at least 2, of which two are checked")
    if not args.timeout > 0:
        mistakes.append(f"--timeout: found {args.timeout:g}; allowed: seconds above 0")
    sleeps = bool(args.sleep or args.sleep_unit)
    if sleeps and args.model:
        mistakes.append("--sleep: found together with --model; allowed: one of them")
    if sizes and (sleeps or args.model):
        mistakes.append(f"--{next(iter(sizes))}: found with another model; allowed: with the small GPT only")
    if mistakes:
        raise BadInput(*mistakes)


def _seconds_per_tick(args: Namespace, timeline: Timeline) -> float:
    """Return how many seconds a tick lasts in sleeping stages.

    The number is the one asked for, or the least at which the shortest pass can be timed well. `BadInput` for an option
    that is no time.
    """
    problem = timeline.problem
    if args.sleep_unit is None:
        shortest = min((t for t in map(problem.duration, timeline.schedule.passes()) if t > 0), default=1)
        return _SHORTEST / shortest
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(\D+)", args.sleep_unit)
    seconds = seconds_in(match[2]) if match else None
    if not match or seconds is None or float(match[1]) == 0:
        raise BadInput(f"--sleep-unit: found {args.sleep_unit!r}; allowed: a time above 0 with its unit, such as 20ms")
    return float(match[1]) * float(seconds) * float(problem.tick)


def _write(report: RunReport, folder: Path) -> list[Path]:
    """Write the trace and the picture; returns their paths."""
    files = []
    try:
        files.append(write_whole(folder / "measured.json", to_text(report.measured)))
    except ValueError as error:
        note(f"note: no measured.json: {error}")
    picture = render_both(report.plan, report.measured, report.title, report.scale)
    return [*files, write_whole(folder / "measured.png", picture)]


COMMANDS.register(
    Command(
        "run",
        "a schedule file executed with PyTorch, every gradient checked",
        configure,
        run,
        Group.USE,
        "run results/schedule.json",
    )
)
