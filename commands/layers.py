"""The command `layers`: prints the layers of a plan file with their costs, and the assumptions of derived layers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from commands.reports.plans import layers as layers_report
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.output import files_written, write_json
from pipesched.files.atomic_write import write_whole
from pipesched.files.plan_file import read_plan


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: a plan file, the part of a plan file to write (`-o`), and `--json`."""
    parser.add_argument("plan", metavar="PLAN", help="plan file (YAML or JSON), with layers or with model and hardware")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the layers as a part of a plan file (YAML)")
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Print the layers of a plan file with their costs; with `-o` write them, as a part of a plan file with numbers.

    Always `DONE`. `--json` prints a document in place of the tables.
    """
    plan = read_plan(args.plan)
    files = [write_whole(Path(args.output), layers_report.text(plan))] if args.output else []
    if args.json:
        write_json(layers_report.document(plan, files))
    else:
        layers_report.show(plan)
        files_written(files)
    return Exit.DONE


COMMANDS.register(
    Command(
        "layers",
        "what a plan file says of a model's layers: time, memory, and what was assumed of them",
        configure,
        run,
        Group.BEGIN,
        "layers examples/plans/llama3-70b-80gb.yaml",
    )
)
