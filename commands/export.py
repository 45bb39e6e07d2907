"""The command `export`: writes a schedule file in the format of another program."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.output import files_written, note, write_json
from pipesched.errors import BadInput
from pipesched.files.atomic_write import is_device, write_whole
from pipesched.files.file_names import uncompressed
from pipesched.files.schedule_file import read_schedule
from runtime.exporters.catalogue import EXPORTERS


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: schedule file, `--format` (default torch-csv), its options, main output file, `--json`."""
    parser.add_argument("schedule", metavar="SCHEDULE", help="schedule file (JSON)")
    formats = "; ".join(f"{exporter.name}: {exporter.description}" for exporter in EXPORTERS)
    parser.add_argument("--format", default="torch-csv", help=formats)
    parser.add_argument("-o", "--output", metavar="FILE", help="main file (default: beside the schedule file)")
    options = "; ".join(
        f"{exporter.name} {option.name}={option.default}: {option.description}"
        for exporter in EXPORTERS
        for option in exporter.options
    )
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help=f"of a format: {options}")
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Write the exported file to the output path, and its side files next to it; print the format's warnings.

    Without `-o` the path is the schedule file's, with the format's suffix. Next to a pipe or a device, such as
    `/dev/stdout`, no side file is written. `BadInput` if one of the paths is that of the schedule file itself, or the
    format cannot express the schedule.
    """
    exporter = EXPORTERS[args.format]
    timeline = read_schedule(args.schedule).timeline
    main = Path(args.output) if args.output else uncompressed(Path(args.schedule)).with_suffix(exporter.suffix)
    stem = main.name.removesuffix(exporter.suffix) if main.name.endswith(exporter.suffix) else main.stem
    texts = {
        main if suffix == exporter.suffix else main.with_name(stem + suffix): text
        for suffix, text in exporter.export(timeline, _options(args.option), str(main.with_name(stem))).items()
    }
    for path in texts:
        if path.exists() and path.samefile(args.schedule):
            raise BadInput(f"--output: found {path}, the schedule file itself; allowed: another file")
    if is_device(main):
        for path in texts.keys() - {main}:
            note(f"note: {path} is not written: beside {main} there is no place for it")
        texts = {main: texts[main]}
    files = [write_whole(path, text) for path, text in texts.items()]
    proof = exporter.proof(timeline) if exporter.proof else None
    for warning in [*exporter.warnings(timeline), *([proof] if proof else [])]:
        note(f"note: {warning}")
    if args.json:
        write_json({"format": exporter.name, "files": [str(path) for path in files], "deadlock": proof})
    else:
        files_written(files)
    return Exit.DONE


def _options(words: Sequence[str]) -> dict[str, str]:
    """Return the `NAME=VALUE` options of a format by name; `BadInput` for other texts.

    The format itself checks names and values.
    """
    wrong = [word for word in words if not word.partition("=")[0] or "=" not in word]
    if wrong:
        raise BadInput(*(f"--option: found {word!r}; allowed: NAME=VALUE, such as fsdp=on" for word in wrong))
    return {name: value for name, _, value in (word.partition("=") for word in words)}


COMMANDS.register(
    Command(
        "export",
        "for training: a schedule file for a runtime or a trace viewer",
        configure,
        run,
        Group.USE,
        "export results/schedule.json --format torch-csv -o schedule.csv",
    )
)
