"""The registry of commands: `COMMANDS`, to which each module of `commands` adds one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from pipesched.registry import Registry


class Exit(IntEnum):
    """Exit codes of commands, which scripts may rely on.

    `DONE` (0); `NO` (1): infeasible or invalid; `BAD_INPUT` (2), or output that cannot be written; `NOT_FOUND` (3):
    nothing found within a limit. Above 128 a signal ended the command: `HUNG_UP` as its terminal closed, `INTERRUPTED`
    by Ctrl-C, `READER_GONE` as nobody reads standard output any more, `TERMINATED`.
    """

    DONE = 0
    NO = 1  # infeasible, or an invalid schedule
    BAD_INPUT = 2
    NOT_FOUND = 3  # a limit passed with no schedule found
    HUNG_UP = 129  # as interrupted, by SIGHUP
    INTERRUPTED = 130
    READER_GONE = 141  # standard output was closed by who read it
    TERMINATED = 143  # as interrupted, by SIGTERM


class Group(StrEnum):
    """Groups of commands by purpose, in the order of the help text: `FIND`, `ASK`, `BEGIN`, `USE`, `OTHER`.

    The value is the group's title there.
    """

    FIND = "find the best schedule"
    ASK = "ask what if"
    BEGIN = "get a file to begin with"
    USE = "use and check what was found"
    OTHER = "others"


@dataclass(frozen=True)
class Command:
    """A subcommand: `configure` adds its arguments to a parser, `run` executes it.

    `help` is one line that says who needs it; `example` is one call, without the program's name (empty: none).
    """

    name: str
    help: str
    configure: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], Exit]
    group: Group = Group.OTHER
    example: str = ""


COMMANDS: Registry[Command] = Registry("commands", "command")
