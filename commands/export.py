"""`export`: a schedule file in the form another program reads."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from commands.catalogue import COMMANDS, Command, Exit
from commands.files import add_json
from commands.output import files_written, note, write_json
from pipesched.errors import BadInput
from pipesched.schedule_file import read_schedule
from pipesched.write_file import write_whole
from runtime.catalogue import EXPORTERS


def configure(parser: ArgumentParser) -> None:
    """Format and place."""
    parser.add_argument("schedule", metavar="SCHEDULE", help="schedule file (JSON)")
    formats = "; ".join(f"{exporter.name}: {exporter.description}" for exporter in EXPORTERS)
    parser.add_argument("--format", default="torch-csv", help=formats)
    parser.add_argument("-o", "--output", metavar="FILE", help="main file (default: beside the schedule file)")
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Write the main file where asked, its side files next to it."""
    exporter = EXPORTERS[args.format]
    timeline = read_schedule(args.schedule).timeline
    texts = exporter.export(timeline)
    main = Path(args.output) if args.output else Path(args.schedule).with_suffix(exporter.suffix)
    if main.exists() and main.samefile(args.schedule):
        raise BadInput(f"--output: found {main}, the schedule file itself; allowed: another file")
    stem = main.name.removesuffix(exporter.suffix) if main.name.endswith(exporter.suffix) else main.stem
    files = [
        write_whole(main if suffix == exporter.suffix else main.with_name(stem + suffix), text)
        for suffix, text in texts.items()
    ]
    for warning in exporter.warnings(timeline):
        note(f"note: {warning}")
    if args.json:
        write_json({"format": exporter.name, "files": [str(path) for path in files]})
    else:
        files_written(files)
    return Exit.DONE


COMMANDS.register(Command("export", "a schedule file for a runtime or a trace viewer", configure, run))
