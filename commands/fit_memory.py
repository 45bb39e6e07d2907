"""The command `fit-memory`: derives the memory of a model's layers from measured peaks, as `layers` of a plan file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from commands.reports.measured import memory_fit as report
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.output import files_written, note, write_json
from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole
from pipesched.files.peaks_file import read_peaks
from pipesched.measurement.fitted_layers import fitted_text
from pipesched.measurement.memory_fit import fit_memory


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: the file of measured peaks, the plan file part to write (`-o`), and `--json`."""
    parser.add_argument("peaks", metavar="FILE", help="layers, and runs with their partition and peaks (YAML or JSON)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the layers as a part of a plan file (YAML)")
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Fit the layers' memory to the measured peaks and print it; with `-o` write the layers as a part of a plan file.

    `BadInput` if the peaks cannot be fitted.
    """
    file = read_peaks(args.peaks)
    try:
        fit = fit_memory(file.peaks)
    except BadInput as error:
        raise BadInput(*(f"{args.peaks}: {line}" for line in error.mistakes)) from None
    files = [write_whole(Path(args.output), fitted_text(file, fit))] if args.output else []
    if args.json:
        write_json(report.document(file, fit, files))
    else:
        report.show(file, fit)
        files_written(files)
    for line in report.notes(file, fit):
        note(f"note: {line}")
    return Exit.DONE


COMMANDS.register(
    Command(
        "fit-memory",
        "for measured peaks of memory: the memory of a model's layers, fitted to them",
        configure,
        run,
        Group.BEGIN,
        "fit-memory peaks.yaml -o layers.yaml",
    )
)
