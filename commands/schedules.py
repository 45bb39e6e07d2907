"""`schedules`: the catalogue of published schedules."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from commands.catalogue import COMMANDS, Command, Exit
from commands.files import add_json
from commands.output import table, write_json
from heuristics.catalogue import HEURISTICS


def configure(parser: ArgumentParser) -> None:
    """No more than the common flag."""
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Print name, needs, closed forms and reference of each."""
    if args.json:
        keys = ("name", "reference", "needs", "bubble", "peak")
        write_json({"schedules": [{key: getattr(h, key) for key in keys} for h in HEURISTICS]})
        return Exit.DONE
    headers = ("schedule", "needs", "bubble time (equal stages, free transfers)", "peak activations", "reference")
    rows = [(h.name, h.needs, h.bubble, h.peak, h.reference) for h in HEURISTICS]
    table("Published schedules", [(header, False) for header in headers], rows)
    return Exit.DONE


COMMANDS.register(Command("schedules", "the published schedules this tool knows", configure, run))
