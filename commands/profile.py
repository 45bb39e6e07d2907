"""The command `profile`: measures a model's passes, transfers and memory by stage, and writes a problem file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from commands.options.model import SIZES, add_model, sizes_of
from commands.reports.measured import profile as profile_report
from commands.reports.measured.traced import from_trace
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.output import complain, files_written, note, write_json
from pipesched.errors import BadInput
from pipesched.files.atomic_write import refuse_unwritable, write_whole
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.file_names import stem_of
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.objective import OBJECTIVES, objectives
from pipesched.problem.placement import Placement, explicit
from runtime.profiling.plan_text import plan_text
from runtime.profiling.problem_text import problem_text
from runtime.profiling.profile import Profile, Request
from runtime.pytorch.run import need_torch
from runtime.running.job import DTYPES
from runtime.running.torch_timing import SPLITS


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: model, pipeline and method of measuring, or traces of a run; the file to write; `--json`."""
    parser.add_argument(
        "--from-trace",
        metavar="FILE",
        nargs="+",
        help="instead of measuring: traces of a run of yours, one a rank, or their folder (torch's profiler, "
        "torchtitan, Megatron's timers, Nsight Systems, Primus)",
    )
    model = add_model(parser)
    model.add_argument(
        "--dtype",
        choices=DTYPES,
        default="float64",
        help="type of parameters and data (default: float64, as `run` has it)",
    )
    model.add_argument("--checkpoint", action="store_true", help="with activation checkpointing")
    model.add_argument("--seed", type=int, default=0, help="of parameters and data (default: 0)")
    pipeline = parser.add_argument_group("pipeline")
    pipeline.add_argument("--devices", type=int, metavar="N", help="devices of the pipeline (default: 2)")
    pipeline.add_argument("--microbatches", type=int, metavar="N", help="in an iteration (default: four a device)")
    pipeline.add_argument(
        "--placement",
        default="linear",
        help="as in a problem file; or the device of each stage: 0,1,1,0 (default: linear)",
    )
    pipeline.add_argument("--chunks", type=int, metavar="N", help="stages a device, for interleaved and wave")
    pipeline.add_argument(
        "--capacity",
        metavar="MIB",
        help="memory of every device for activations, with --by-layer all of it (default: no limit)",
    )
    pipeline.add_argument(
        "--by-layer",
        type=int,
        nargs="?",
        const=0,
        metavar="N",
        help="measure the model cut into N stages, one a layer, and write a plan file: `plan` decides the cut "
        "(of the small GPT N follows from --layers)",
    )
    names = [one.name for one in objectives() if one.passes is None]
    pipeline.add_argument("--objective", choices=names, default="makespan", help="what to minimise (default: makespan)")
    how = parser.add_argument_group("measuring")
    how.add_argument("--split", choices=SPLITS, default="autograd", help="who splits a backward (default: autograd)")
    how.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where to measure (default: cpu)")
    how.add_argument("--repetitions", type=int, default=20, metavar="N", help="that are counted (default: 20)")
    how.add_argument("--warm-up", type=int, default=3, metavar="N", help="repetitions not counted (default: 3)")
    how.add_argument(
        "--threads", type=int, metavar="N", help="of each device on CPU (default: the processors shared out)"
    )
    how.add_argument("--transfer", metavar="MS", help="the time of a transfer in ms, instead of measuring it")
    parser.add_argument("-o", "--output", metavar="FILE", help="the problem file to write (YAML)")
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Measure the model, print the results, and write the problem file if `-o` is given.

    Exit code 1, and no file, if the problem measured is infeasible. With `--from-trace` it reads traces instead.
    `BadInput` without torch, for options that do not go together, and for a model that cannot be measured.
    """
    if args.from_trace:
        return from_trace(args)
    args.devices = 2 if args.devices is None else args.devices
    need_torch()
    _check(args)
    where = _placement(args)
    request = Request(
        placement=where,
        model=args.model or "gpt",
        options=sizes_of(args),
        split=args.split,
        dtype=args.dtype,
        device=args.device,
        seed=args.seed,
        repetitions=args.repetitions,
        warm_up=args.warm_up,
        threads=args.threads,
        checkpoints=args.checkpoint,
        transfer=None if args.transfer is None else float(_decimal("--transfer", args.transfer)) / 1000,
    )
    if args.output:
        refuse_unwritable(args.output)
    from runtime.pytorch.profiling.profiler import profile

    found = profile(request)
    text, reason = _written(args, found)
    files = [write_whole(args.output, text)] if args.output and reason is None else []
    if reason is not None:
        complain(f"infeasible, so nothing is written: {reason}")
    if args.json:
        write_json(profile_report.document(found, files))
    else:
        profile_report.show(found)
        files_written(files)
        if not files and reason is None:
            note("note: nothing written; -o FILE writes the problem that `solve` reads, with --by-layer the plan file")
    return Exit.DONE if reason is None else Exit.NO


def _written(args: Namespace, found: Profile) -> tuple[str, str | None]:
    """Return the text of the problem or plan file, and the reason if no schedule fits its memory, else None."""
    name = stem_of(args.output) if args.output else "profile"
    capacity = None if args.capacity is None else str(_decimal("--capacity", args.capacity))
    microbatches = args.microbatches or 4 * args.devices
    if args.by_layer is not None:
        text = plan_text(found, name, args.devices, microbatches, capacity, args.objective)
        plan_problem_from(read_yaml(text, name), name)
        return text, None
    text = problem_text(found, name, microbatches, capacity, args.objective)
    return text, why_infeasible(problem_from(read_yaml(text, name), name))


def _check(args: Namespace) -> None:
    """Raise `BadInput` with a line for each wrong number, and for options that `--model` or `--by-layer` excludes."""
    least = {"devices": 1, "repetitions": 1, "warm_up": 1, "microbatches": 1, "threads": 1, **dict.fromkeys(SIZES, 1)}
    given = {name: getattr(args, name) for name in least if getattr(args, name) is not None}
    mistakes = [
        f"--{name.replace('_', '-')}: found {value}; allowed: at least {least[name]}"
        for name, value in given.items()
        if value < least[name]
    ]
    sizes = list(sizes_of(args))
    mistakes += _mistakes_by_layer(args)
    if args.model and sizes:
        mistakes.append(f"--{sizes[0].replace('_', '-')}: found with --model; allowed: with the small GPT only")
    if mistakes:
        raise BadInput(*mistakes)


def _mistakes_by_layer(args: Namespace) -> Iterator[str]:
    """Yield a line for each broken rule of `--by-layer`."""
    if args.by_layer is None:
        return
    if args.placement != "linear" or args.chunks is not None:
        yield "--by-layer: found with --placement or --chunks; allowed: without them, `plan` decides on both"
    if OBJECTIVES[args.objective].repeats:
        yield f"--objective: found {args.objective} with --by-layer; allowed: makespan, span"
    if args.model is None and (args.by_layer or args.layers is None):
        yield "--by-layer: found with the small GPT; allowed: without a number, and with --layers"
    if args.model is not None and args.by_layer < 2:
        number = args.by_layer or "no number"
        yield f"--by-layer: found {number} with --model; allowed: the number of layers, at least 2"


def _placement(args: Namespace) -> Placement:
    """Return the placement of the stages, by the rules of problem files.

    With `--by-layer` all layers are on one device.
    """
    if args.by_layer is not None:
        return explicit(1, [0] * (args.by_layer or args.layers + 2))
    listed = args.placement.replace(" ", "").strip("[]").split(",")
    where = list(map(int, listed)) if all(item.isdecimal() for item in listed) else args.placement
    document = {"devices": args.devices, "microbatches": 1, "placement": where, "times": {"forward": 1, "backward": 1}}
    if args.chunks is not None:
        document["chunks"] = args.chunks
    return problem_from(document, "profile").placement


def _decimal(flag: str, text: str) -> Decimal:
    """Return the exact number, at least 0, typed for a flag.

    `BadInput` for anything else.
    """
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number < 0:
        raise BadInput(f"{flag}: found {text!r}; allowed: a number of at least 0")
    return number


COMMANDS.register(
    Command(
        "profile",
        "for a model that runs: its passes and memory measured, as a problem to solve",
        configure,
        run,
        Group.BEGIN,
        "profile --from-trace trace.json -o problem.yaml",
    )
)
