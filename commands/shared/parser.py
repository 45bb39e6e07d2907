"""The command line as a parser: every command with its arguments."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from commands.shared.catalogue import COMMANDS, Command, Exit
from commands.shared.output import complain
from commands.shared.versions import ShowVersions
from pipesched.errors import did_you_mean


class _Parser(ArgumentParser):
    """A parser whose complaints are one line and suggest the nearest command."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        # As in Python 3.14: a word such as -5% is a value, to be refused by its option, and no option itself.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        if "invalid choice:" in message and "argument COMMAND" in message:
            word = message.split("invalid choice: ")[1].split(" ", maxsplit=1)[0].strip("'\"")
            names = COMMANDS.names()
            message = f"unknown command {word!r}; known: {', '.join(names)}{did_you_mean(word, names)}"
        complain(f"{message} (see `{self.prog} --help`)")
        raise SystemExit(Exit.BAD_INPUT)


def parser(words: Sequence[str] = ()) -> ArgumentParser:
    """The command line as these words need it: of one command where they begin with its name, else all of it."""
    root = _Parser(prog="pipesched", description="The best schedule for your pipeline-parallel training, with proof.")
    root.add_argument("--version", action=ShowVersions, help="the versions of pipesched and of what it rests on")
    subparsers = root.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for command in _needed(words):
        sub = subparsers.add_parser(command.name, help=command.help, description=command.help)
        command.configure(sub)
        sub.set_defaults(run=command.run)
    return root


def _needed(words: Sequence[str]) -> Iterable[Command]:
    """The commands whose arguments must be known: each imports what it works with, seconds for all of them."""
    if words and words[0] == "--version":
        return ()
    asked = COMMANDS.alone(words[0]) if words else None
    return COMMANDS if asked is None else (asked,)
