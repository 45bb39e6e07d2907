"""The command `schedules`: prints the catalogue of published schedules."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.output import write_json
from commands.shared.tables import Column, table
from heuristics.catalogue import HEURISTICS, Heuristic


def configure(parser: ArgumentParser) -> None:
    """Add the only option, `--json`."""
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Print name, requirements, closed forms and reference of each published schedule; exit code 0."""
    if args.json:
        keys = ("name", "reference", "needs", "bubble", "peak")
        write_json({"schedules": [{key: getattr(h, key) for key in keys} for h in HEURISTICS]})
        return Exit.DONE
    columns = [
        Column("schedule"),
        Column("needs"),
        Column("bubble time (equal stages, free transfers)", leave_out=1),
        Column("peak activations", leave_out=2),
        Column("reference", leave_out=3),
    ]
    rows = [(_names(h), h.needs, h.bubble, h.peak, h.reference) for h in HEURISTICS]
    table("Published schedules (other names, which commands take too, in brackets)", columns, rows)
    return Exit.DONE


def _names(schedule: Heuristic) -> str:
    """Return a schedule's name, and on further lines, in brackets, its other names that commands accept."""
    return "\n".join([schedule.name, *(f"({other})" for other in HEURISTICS.other_names(schedule.name))])


COMMANDS.register(
    Command("schedules", "the published schedules this tool knows", configure, run, Group.BEGIN, "schedules")
)
