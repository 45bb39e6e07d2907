"""The way in from the shell: reads the arguments, runs the command, turns errors into lines and an exit code."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any, NoReturn

from commands.catalogue import COMMANDS, Exit
from commands.output import complain
from pipesched.errors import BadInput, Deadlock, did_you_mean
from pipesched.version import VERSION


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


def parser() -> ArgumentParser:
    """The whole command line."""
    root = _Parser(prog="pipesched", description="The best schedule for your pipeline-parallel training, with proof.")
    root.add_argument("--version", action="version", version=f"pipesched {VERSION}")
    subparsers = root.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for command in COMMANDS:
        sub = subparsers.add_parser(command.name, help=command.help, description=command.help)
        command.configure(sub)
        sub.set_defaults(run=command.run)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    try:
        parsed = parser().parse_args(arguments)
        return int(parsed.run(parsed))
    except BadInput as error:
        for mistake in error.mistakes:
            complain(mistake)
        return Exit.BAD_INPUT
    except Deadlock as error:
        complain(str(error))
        return Exit.NO
    except KeyboardInterrupt:
        complain("interrupted")
        return Exit.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader went away, as `| head` does; nothing is left to say to it
        return Exit.DONE
    except OSError as error:
        complain(f"cannot write the output: {error.strerror}")
        return Exit.BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
