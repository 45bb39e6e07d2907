"""The command `calibrate`: fits a device's rates to measured steps.

Writes them as a hardware file for `layouts` and `new --from`.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from dataclasses import replace
from pathlib import Path

from commands.options.training import add_sizes, add_training, wanted_of
from commands.options.values import whole
from commands.reports.measured import rates_fit as report
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.measured_files import observations_of, read_measured
from commands.shared.output import files_written, note, write_json
from pipesched.errors import BadInput
from pipesched.files.atomic_write import refuse_unwritable, write_whole
from pipesched.files.model_configs.hardware_file import device_text
from pipesched.files.model_configs.read_config import KINDS
from pipesched.layers.recompute_rule import MODULES
from solver.calibration.rates_fit import fit_rates


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: measured files, model, training, device, layout of a trace, file to write, and `--json`.

    The layout is that of the run in a trace or in what `profile` wrote: sizes, `--partition` and `--recompute`.
    """
    parser.add_argument(
        "measured",
        metavar="MEASURED",
        nargs="+",
        help="steps with their layouts and seconds (YAML, or CSV such as layouts.csv with a column seconds); what "
        "`profile` wrote, by layer or from a trace; traces of one run",
    )
    parser.add_argument("--config", metavar="CONFIG", help=f"the model: {KINDS}")
    training = parser.add_argument_group("training, and the device that the rates begin from")
    add_training(training, "of a traced step, on each replica (default: the trace's)")
    ran = parser.add_argument_group("layout of a trace, or of what `profile` wrote")
    add_sizes(ran, ("tensor", "context", "pipeline", "data", "expert"), "1; of pipeline the trace's")
    ran.add_argument("--partition", type=_counts, metavar="N,N,...", help="layers of each stage (default: even)")
    ran.add_argument(
        "--recompute", type=_recompute_mode, default="none", metavar="WAY",
        help=f"what every layer recomputed: full, or some of {', '.join(MODULES)} joined by + (default: none)",
    )  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE", help="write the hardware file (YAML)")
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Read the measured files, fit the device's rates to them, print the fit, and write a hardware file with `-o`.

    Exit code 1 if the fitted rates do not explain the measured durations; the file is written all the same. `BadInput`
    if the device is named nowhere, or the output's name has another ending than that of a YAML or JSON file.
    """
    if args.output:
        if Path(args.output).suffix not in (".yaml", ".yml", ".json"):
            raise BadInput(f"-o: found {args.output!r}; allowed: a name that ends in .yaml")
        refuse_unwritable(args.output)
    files = read_measured(args.measured, args)
    hardware = args.hardware or files.hardware
    if hardware is None:
        raise BadInput("--hardware: missing; it is required where no file of measured steps names it")
    own = Namespace(**vars(args) | {"hardware": hardware, "microbatches": 1, "mfu": None, "microbatch_size": None})
    wanted = wanted_of(own, 1, None)
    if args.mfu is not None:
        wanted = replace(wanted, device=replace(wanted.device, products=float(args.mfu)))
    fit = fit_rates(observations_of(files, args, wanted), wanted)
    text = device_text(*report.named(fit, wanted.hardware), report.comments(fit, wanted.hardware))
    written = [write_whole(Path(args.output), text)] if args.output else []
    if args.json:
        write_json(report.document(fit, wanted.hardware, written))
    else:
        report.show(fit, wanted.hardware)
        files_written(written)
    for line in [*files.notes, *report.notes(fit)]:
        note(f"note: {line}")
    if not written and not args.json:
        note("note: nothing written; -o FILE writes the hardware file that `layouts --hardware FILE` reads")
    warned = report.warning(fit, wanted.hardware)
    if warned is not None:
        note(f"warning: {warned}")
    return Exit.DONE if report.explained(fit) else Exit.NO


def _counts(text: str) -> tuple[int, ...]:
    return tuple(map(whole(1, 10**6), text.split(",")))


def _recompute_mode(text: str) -> str:
    if text in ("none", "full", "selective") or {*text.split("+")} <= {*MODULES}:
        return text
    raise ArgumentTypeError(f"found {text!r}; allowed: none, full, or some of {', '.join(MODULES)} joined by +")


COMMANDS.register(
    Command(
        "calibrate",
        "for a few measured steps: the rates of your devices, as a hardware file for `layouts`",
        configure,
        run,
        Group.BEGIN,
        "calibrate steps.yaml -o mine.yaml",
    )
)
