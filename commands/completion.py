"""The command `completion`: prints a completion script, made by shtab, for a shell.

It completes commands, options, names and files.
"""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence

import shtab

from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.output import write_json
from commands.shared.parser import parser as whole_parser
from heuristics.catalogue import HEURISTICS
from plots.catalogue import PLOTS
from runtime.exporters.catalogue import EXPORTERS
from runtime.exporters.restrictions import RESTRICTIONS
from runtime.partitions.catalogue import PARTITION_FORMATS

# Where each shell looks for the script. A file, since a start of this program for each new shell would be felt.
SHELLS: Mapping[str, str] = {
    "bash": "~/.local/share/bash-completion/completions/pipesched",
    "zsh": "_pipesched in a folder of $fpath",
    "fish": "~/.config/fish/completions/pipesched.fish",
}
# What the values of an argument are, by the word that stands for them in its help.
_PLACES = {"DIR": shtab.DIRECTORY} | dict.fromkeys(
    ("FILE", "PROBLEM", "PLAN", "SCHEDULE", "TRACE", "PEAKS"), shtab.FILE
)


def configure(parser: ArgumentParser) -> None:
    """Add the argument `shell`, whose choices are the keys of `SHELLS`, and `--json`."""
    places = "; ".join(f"{shell}: {place}" for shell, place in SHELLS.items())
    parser.add_argument("shell", choices=list(SHELLS), help=f"print the script for it, to be kept as {places}")
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Print the completion script, which does not call pipesched when it completes."""
    script = shtab.complete(_with_values(whole_parser()), args.shell)
    if args.json:
        write_json({"shell": args.shell, "script": script})
    else:
        print(script)
    return Exit.DONE


def _with_values(parser: ArgumentParser) -> ArgumentParser:
    """Return the parser itself, in which each argument's values are now marked for completion, as files or names."""
    names = _names()
    for action in _actions(parser):
        known = next((names[flag] for flag in action.option_strings if flag in names), None)
        if known and action.choices is None:
            action.choices = known
        elif action.choices is None and (action.metavar in _PLACES or action.dest in ("output", "config")):
            action.complete = _PLACES.get(str(action.metavar), shtab.FILE)  # type: ignore[attr-defined]
    return parser


def _names() -> Mapping[str, Sequence[str]]:
    """Return, by option, the names that it takes as values: of schedules, formats, plots, runtimes."""
    return {
        "--schedule": HEURISTICS.names(),
        "--schedules": HEURISTICS.names(),
        "--format": EXPORTERS.names(),
        "--kind": PLOTS.names(),
        "--for": sorted(RESTRICTIONS),
        "--settings": PARTITION_FORMATS.names(),
    }


def _actions(parser: ArgumentParser) -> Iterator[Action]:
    """Yield the arguments of all commands."""
    for action in parser._actions:
        yield action
        for command in action.choices.values() if isinstance(action.choices, dict) else ():
            yield from _actions(command)


COMMANDS.register(
    Command(
        "completion",
        "a script that completes commands and options in your shell",
        configure,
        run,
        Group.USE,
        "completion bash",
    )
)
